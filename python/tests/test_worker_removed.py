"""`tupelo worker`, and who calls its function, when their space is removed (C4)."""

import signal
import subprocess
import sys
import time

import tupelo as ts
from tupelo import REST
from tupelo._native import is_announced
from tupelo.tasks.crew import Processes


def is_there(url):
    """Return whether there is a space of this name."""
    try:
        ts.connect(url, create=False).close()
    except ts.SpaceNotFound:
        return False
    return True


FILM = """
from tupelo.batteries import worker

@worker({url!r})
def render(frame):
    return f"sea {{frame}}"
"""


def test_workers_and_who_calls_them_go_on_in_the_space_that_has_the_name_now_c4(
    shm, tmp_path, monkeypatch
):
    (tmp_path / "removed_film.py").write_text(FILM.format(url=shm.url), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import removed_film as film  # noqa: PLC0415

    words = [sys.executable, "-m", "tupelo.worker", "removed_film:render", "-n", "2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as service:
        assert service.stdout.readline().startswith("serving ")
        assert film.render.submit(1).result(60) == "sea 1"
        ts.remove(shm.url)
        assert film.render.submit(2).result(60) == "sea 2"
        told = service.stdout.readline()
        assert told.startswith("the space was removed "), told
        assert told.endswith("; serving the one that has its name now\n"), told
        with ts.connect(shm.url, create=False) as new:
            assert is_announced(new, "removed_film:render") is True
            new.wait_none("tupelo.task", REST, timeout=60)
        ts.connect(shm.url, fresh=True).close()
        assert film.render.submit(3).result(60) == "sea 3"
        service.send_signal(signal.SIGINT)
        rest, error = service.communicate(timeout=60)
    assert "every process ends its task" in rest
    assert (error, service.returncode) == ("", 0)


def test_a_process_that_starts_when_the_space_is_removed_serves_the_next_one_c4(
    shm, tmp_path, monkeypatch
):
    (tmp_path / "late_film.py").write_text(FILM.format(url=shm.url), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import late_film as film  # noqa: PLC0415

    terms = film.render.address.crew_terms()._replace(reconnects=True)
    broken = []
    with ts.connect(shm.url) as before:
        crew = Processes(before, terms, broken.append)
        ts.remove(shm.url)
        crew.add(1)
        try:
            # The process makes the next one: nobody else does.
            while not broken and not is_there(shm.url):
                time.sleep(0.01)
            assert broken == []
            assert film.render.submit(1).result(60) == "sea 1"
        finally:
            crew.kill()
