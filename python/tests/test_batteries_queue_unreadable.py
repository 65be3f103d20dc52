"""Queue: an item that a worker can not read is a failed attempt, and does not stop the others."""

import asyncio
import threading
from fractions import Fraction

import pytest
from forgetting import forgets_a_claim
from refusing import Refusing

import tupelo as ts
from tupelo import aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Queue


@pytest.fixture
def strict(space):
    """Return a connection to the space that reads no objects."""
    with ts.connect(space.url, objects="strict") as strict:
        yield strict


@pytest.mark.parametrize("priority", [0, 5])
@pytest.mark.parametrize("get", [lambda queue: queue.get(timeout=5), Queue.try_get])
def test_an_unreadable_item_is_dead_after_its_attempts_and_the_next_is_got(
    space, strict, get, priority
):
    mail = Queue[object](space, "mail")
    mail.put(Fraction(1, 2), priority=priority)
    mail.put("good", priority=priority)
    reader = Queue[object](strict, "mail", max_attempts=2)
    for _ in range(2):
        with pytest.raises(ts.NotEncodable):
            get(reader)
    with get(reader) as item:
        assert item == "good"
    (dead,) = mail.dead
    assert (dead.item, dead.attempts) == (Fraction(1, 2), 2)
    assert dead.error.startswith("NotEncodable: ")
    with pytest.raises(ts.NotEncodable):
        len(reader.dead)
    assert reader.dead.retry() == 1
    assert len(mail) == 1


@pytest.mark.parametrize("priority", [0, 5])
def test_of_many_that_wait_as_many_are_told_as_the_item_has_attempts(
    space, strict, eventually, priority
):
    reader = Queue[object](strict, "mail", max_attempts=2)
    found = []

    def work():
        try:
            with reader.get(timeout=60) as item:
                found.append(item)
        except ts.NotEncodable:
            found.append(None)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    eventually(lambda: space.stat()["waiters"] == 4)
    mail = Queue[object](space, "mail")
    mail.put(Fraction(1, 2), priority=priority)
    eventually(lambda: len(mail.dead) == 1)
    for _ in range(2):
        mail.put("good")
    for worker in workers:
        worker.join()
    assert sorted(found, key=str) == [None, None, "good", "good"]


@forgets_a_claim
def test_an_unreadable_item_that_nobody_can_claim_now_is_none(space, strict):
    mail = Queue[object](space, "mail")
    mail.put(Fraction(1, 2), priority=5)
    reader = Queue[object](strict, "mail")
    with space.transaction() as transaction:
        assert transaction.try_read("tupelo.queue", "mail", int, 5, list) is not None
        assert reader.try_get() is None
        mail.put("good")
        assert reader.get(timeout=5).item == "good"
    with pytest.raises(ts.NotEncodable):
        reader.try_get()


def test_an_unreadable_tuple_of_no_priority_stops_nobody(space, strict):
    reader = Queue[object](strict, "mail", max_attempts=1)
    space.put("tupelo.queue", "mail", 0, 10, [Fraction(1, 2)])
    assert reader.try_get() is None
    with pytest.raises(ts.NotEncodable):
        reader.get(timeout=5)
    with pytest.raises(ts.Timeout):
        reader.get(timeout=0)


@forgets_a_claim
def test_what_the_handler_of_a_signal_raises_is_no_item_that_can_not_be_read(space, monkeypatch):
    mail = Queue[object](space, "mail")
    mail.put("good")

    def interrupted():
        raise TimeoutError

    with monkeypatch.context() as during:
        during.setattr(mail._core, "_claim_next", interrupted)  # noqa: SLF001 - where it comes
        with pytest.raises(TimeoutError):
            mail.try_get()
    assert mail.get().attempt == 1


@forgets_a_claim
def test_without_a_limit_an_unreadable_item_stays_the_next(space, strict):
    mail = Queue[object](space, "mail")
    mail.put(Fraction(1, 2))
    mail.put("good")
    for _ in range(5):
        with pytest.raises(ts.NotEncodable):
            Queue[object](strict, "mail").get(timeout=5)
    with mail.get() as item:
        assert item == Fraction(1, 2)
    assert mail.get().item == "good"


def test_an_item_whose_class_raises_has_had_an_attempt(space, monkeypatch):
    mail = Queue[object](space, "mail", max_attempts=1)
    mail.put(Refusing(1))
    mail.put("good")
    monkeypatch.setattr(Refusing, "is_allowed", False)
    with pytest.raises(ValueError, match="not here"):
        mail.get(timeout=5)
    with mail.get(timeout=5) as item:
        assert item == "good"
    monkeypatch.undo()
    assert mail.dead.all() == [(Refusing(1), 1, "ValueError: not here")]


def test_an_unreadable_item_keeps_its_room(space, strict):
    mail = Queue[object](space, "mail", maxsize=1)
    mail.put(Fraction(1, 2))
    with pytest.raises(ts.NotEncodable):
        Queue[object](strict, "mail").get(timeout=5)
    with pytest.raises(ts.Timeout):
        mail.put("more", timeout=0)
    mail.get().done()
    mail.put("more", timeout=0)


def test_tasks_meet_an_unreadable_item_alike(space):
    async def main():
        async with (
            aio.connect(space.url) as shared,
            aio.connect(space.url, objects="strict") as strict,
        ):
            mail = awaited.Queue[object](shared, "mail")
            reader = awaited.Queue[object](strict, "mail", max_attempts=3)
            waiting = asyncio.create_task(anext(_gotten(reader)))
            await asyncio.sleep(0)
            await mail.put(Fraction(1, 2))
            with pytest.raises(ts.NotEncodable):
                await waiting
            with pytest.raises(ts.NotEncodable):
                await reader.try_get()
            with pytest.raises(ts.NotEncodable):
                await reader.get(timeout=5)
            await mail.put("good")
            async with reader.get(timeout=5) as item:
                assert item == "good"
            assert [(dead.item, dead.attempts) async for dead in mail.dead] == [(Fraction(1, 2), 3)]

    asyncio.run(main())


async def _gotten(queue):
    async with queue.get(timeout=60) as item:
        yield item
