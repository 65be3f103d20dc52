"""omniORB as a peer: what it needs, and, where that is installed, what its programs do."""

from pathlib import Path

import numpy as np
import pytest

from tupelo_bench.backends import omniorb
from tupelo_bench.backends.omniorb import OmniORB
from tupelo_bench.harness.lifetime import ServerFailedError
from tupelo_bench.runner import started

# A peer that few have: what its programs do can only be seen where Debian's packages of it are
# installed. What is said where they are not is tested everywhere, above the first that is marked.
MISSING = OmniORB.missing()
where_installed = pytest.mark.skipif(MISSING is not None, reason=f"omniORB: {MISSING}")


def test_what_is_missing_is_named(monkeypatch):
    has = {"omniidl", "g++"}
    monkeypatch.setattr(omniorb.shutil, "which", lambda name: name if name in has else None)
    monkeypatch.setattr(omniorb, "preprocessed", lambda _: None)
    assert OmniORB.missing() == "no omniORB headers"
    has.remove("g++")
    assert OmniORB.missing() == "no g++"
    has.clear()
    assert OmniORB.missing() == "no omniidl"
    assert "libomniorb4-dev" in OmniORB.how_to_install


@where_installed
def test_its_servers_answer_and_sort_and_end_with_their_client():
    assert OmniORB.version()[0].isdigit()
    with started(OmniORB) as peer:
        servers = [peer.serve(number) for number in range(2)]
        client = peer.client(2)
        assert len(client.exchange(256, 0, 20, 5)) == 20
        assert min(client.exchange(8_192, 100, 3, 0)) > 0
        parts = [np.array([3, -1, 2]), np.arange(2_000)[::-1].copy()]
        answers, duration_ns = client.sort(parts)
        assert duration_ns > 0
        assert [answer.tolist() for answer in answers] == [sorted(part) for part in parts]
        client.stop()
        assert [server.process.wait(60) for server in servers] == [0, 0]


@where_installed
def test_a_client_that_can_not_do_what_it_is_told_says_so():
    with started(OmniORB) as peer:
        server = peer.serve(0)
        client = peer.client(1)
        with pytest.raises(ServerFailedError, match="ended with code 1"):
            client.sort([np.arange(3)] * 2)
        server.stop()


@where_installed
def test_its_servers_listen_on_no_address_of_the_network():
    with started(OmniORB) as peer:
        server = peer.serve(0)
        opened = Path(f"/proc/{server.process.pid}/fd").iterdir()
        sockets = {str(link.readlink()) for link in opened}
        assert not sockets & {*sockets_of("tcp", 9), *sockets_of("tcp6", 9)}
        assert sockets & set(sockets_of("unix", 6))
        server.stop()


def sockets_of(family, inode_at):
    """All sockets of a family, as the links of /proc name them."""
    lines = Path(f"/proc/net/{family}").read_text(encoding="ascii").splitlines()
    return [f"socket:[{line.split()[inode_at]}]" for line in lines[1:]]


@pytest.mark.parametrize(
    ("experiment", "metric"),
    [("rpc", "round trip between native programs"), ("sort", "response time")],
)
def test_the_experiments_show_its_figures_or_how_to_install_it(bench, experiment, metric):
    ended = bench(experiment, "--quick", "--repeats", "1", "--vs", "omniorb")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    if MISSING:
        assert f"{experiment}, omniorb : not installed" in ended.stdout
        assert "apt-get install omniidl" in ended.stdout
        return
    head, *rows = ended.stdout.split(f"\n{metric}\n")[1].split("\n\n")[0].splitlines()
    assert "omniorb" in head
    assert rows
    assert all("\u00b5s" in row or "ms" in row for row in rows)
