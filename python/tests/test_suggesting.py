"""A wrong keyword, or the name of a function that is not there: what was meant is named."""

import asyncio
import inspect

import pytest

import tupelo as ts
from tupelo import aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Barrier, Latch, Lock, Pool, Queue, RWLock, Semaphore, Service, worker
from tupelo.tasks import functions


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda _: ts.connect("mem://x", sise="1M"), r"connect() has no keyword argument 'sise'"),
        (lambda _: aio.connect("mem://x", sise="1M"), "did you mean 'size'?"),
        (lambda s: Pool(s.url, worker=3), "did you mean 'workers'?"),
        (lambda s: awaited.Pool(s.url, worker=3), "Pool() has no keyword argument 'worker'"),
        (lambda s: Queue(s, "mail", max_size=3), "did you mean 'maxsize'?"),
        (lambda s: awaited.Queue(s, "mail", max_size=3), "did you mean 'maxsize'?"),
        (
            lambda s: Lock(s, "x", tll=3),
            "Lock() has no keyword argument 'tll'; did you mean",
        ),
        (lambda s: Semaphore(s, "x", count=3), "(it takes: space, name, n, ttl)"),
        (lambda s: RWLock(s, "x", reader=3), "did you mean 'readers'?"),
        (lambda s: Barrier(s, "x", partis=3), "did you mean 'parties'?"),
        (lambda s: Latch(s, "x", counts=3), "did you mean 'count'?"),
        (lambda s: Service(s, "x", print, concurency=3), "did you mean 'concurrency'?"),
        (lambda s: worker(s.url, retry=3), "did you mean 'retries'?"),
    ],
)
def test_a_wrong_keyword_is_told_with_the_one_that_was_meant(space, call, told):
    with pytest.raises(TypeError) as caught:
        call(space)
    assert told in str(caught.value)


def test_what_suggests_looks_as_it_did():
    assert list(inspect.signature(ts.connect).parameters)[:3] == ["url", "create", "fresh"]
    assert ts.connect.__doc__.startswith("Open a space")
    assert asyncio.iscoroutinefunction(ts.connect) is False


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("math:sqrtt", "did you mean math:sqrt?"),
        ("flim:render", "there is no module flim for flim:render; it was looked for in "),
        ("flim:render", "did you mean film:render?"),
        ("wants:render", "wants:render can not be imported: it imports never_installed, which"),
    ],
)
def test_a_function_that_is_not_there_is_told_with_the_one_that_was_meant(
    tmp_path, monkeypatch, path, told
):
    (tmp_path / "film.py").write_text("def render(): pass\n")
    (tmp_path / "wants.py").write_text("import never_installed\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LookupError) as caught:
        functions.at(path)
    assert told in str(caught.value)
