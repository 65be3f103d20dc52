"""A server that keeps a space in a file, whose disk refuses or takes long (rule C4)."""

import json
import resource
import signal
import threading
import urllib.error
import urllib.request

import pytest
from durable import Locked, forget_memory, in_file
from serving import server

import tupelo as ts


@pytest.fixture
def url(new_url):
    return new_url("file")


@pytest.fixture
def serving(url, tmp_path):
    """Serve the space of the file as `jobs`, and others in memory."""
    with server(tmp_path / "socket", "--space", f"jobs={url}") as process:
        process.at = f"unix://{tmp_path}/socket?space="
        yield process


def refuse(process):
    """Let no byte of a process get to any file; undone by what is returned."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    return lambda: resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)


def test_a_server_whose_disk_refuses_says_so_and_goes_on_c4(serving, url):
    with ts.connect(f"{serving.at}jobs") as jobs, ts.connect(f"{serving.at}other") as other:
        jobs.put("job", 1)
        other.put("job", 1)
        claim = other.claim("job", int)
        accept = refuse(serving)
        with pytest.raises(ts.DurabilityUnknown, match="TUP-025: the call is in effect in memory"):
            jobs.put("job", 2)
        # The connection has lost nothing, and spaces in memory have nothing to wait for.
        other.put("job", 2)
        claim.done()
        assert other.read_all("job", int) == [("job", 2)]
        with pytest.raises(ts.DurabilityUnknown):
            jobs.try_take("job", int)
        accept()
        assert jobs.read_all("job", int) == [("job", 1), ("job", 2)]
        assert jobs.take("job", int) == ("job", 1)
        jobs.put("job", 3)
        assert in_file(url) == 2


def test_a_call_waits_for_the_disk_of_its_own_space_alone_c4(serving, url):
    with (
        ts.connect(f"{serving.at}jobs") as jobs,
        ts.connect(f"{serving.at}other") as other,
        ts.connect(url) as beside,
    ):
        other.put("ready")
        with Locked(url) as locked:
            put = threading.Thread(target=jobs.put, args=("job", 1))
            put.start()
            beside.read("job", int)
            other.put("job", 1)
            assert other.take("job", int) == ("job", 1)
            assert put.is_alive()
            locked.release()
            put.join()
        assert in_file(url) == 1


def ask(address, path, body=None):
    """Send a request, and return the answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{address}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http
        text = answer.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


@pytest.fixture
def over_http(url):
    with server("http://127.0.0.1:0", "--space", f"jobs={url}") as process:
        process.address = process.url.removeprefix("http://").split("/")[0]
        yield process


def test_what_was_acknowledged_over_http_is_there_after_the_server_was_killed_c4(over_http, url):
    ask(over_http.address, "/v1/spaces/jobs/put", {"tuple": ["job", 1]})
    ask(over_http.address, "/v1/spaces/jobs/put", {"tuple": ["job", 2]})
    ask(over_http.address, "/v1/spaces/jobs/take", {"template": ["job", 1]})
    over_http.send_signal(signal.SIGKILL)
    over_http.wait()
    forget_memory(url)
    with ts.connect(url) as space:
        assert ("job", 2) in space.read_all("job", int)


def test_a_request_over_http_waits_for_the_disk_of_its_own_space_alone_c4(over_http, url):
    with ts.connect(url) as beside, Locked(url) as locked:
        body = {"tuple": ["job", 1]}
        arguments = (over_http.address, "/v1/spaces/jobs/put", body)
        put = threading.Thread(target=ask, args=arguments)
        put.start()
        beside.read("job", int)
        assert ask(over_http.address, "/livez") == "ok\n"
        ask(over_http.address, "/v1/spaces/other/put", body)
        assert put.is_alive()
        locked.release()
        put.join()
    assert in_file(url) == 1


def test_a_disk_that_refuses_is_told_over_http_c4(over_http, url):
    ask(over_http.address, "/v1/spaces/jobs/put", {"tuple": ["job", 1]})
    accept = refuse(over_http)
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(over_http.address, "/v1/spaces/jobs/put", {"tuple": ["job", 2]})
    assert "TUP-025" in refused.value.read().decode()
    accept()
    ask(over_http.address, "/v1/spaces/jobs/put", {"tuple": ["job", 3]})
    assert in_file(url) == 3
