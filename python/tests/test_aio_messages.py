"""tupelo.aio: what is refused is told in the words of the synchronous space."""

import asyncio
import inspect
from dataclasses import dataclass

import pytest

import tupelo as ts
from tupelo import REST, aio, errors


@dataclass
class Job:
    id: int
    status: str = "ready"


@dataclass
class Alarm:
    timeout: str
    to: str = ""
    n: int = 0


MISTAKES = {
    "nearly a keyword": (("a",), {"tiemout": 1}),
    "no keyword": (("a", int), {"status": "new"}),
    "no keyword, no pattern": ((), {"status": "new"}),
    "no time": (("a",), {"timeout": "soon"}),
    "no pattern": (("a", object), {}),
    "no condition": (("a",), {"where": "f[1] >"}),
    "no field of the class": ((Job,), {"statsu": "new"}),
    "fields of an instance": ((Job(1),), {"id": 1}),
    "a field that goes by the name of a keyword": ((Alarm,), {"timeout": "soon"}),
    "the same, twice": ((Alarm,), {"to": "Ann", "n": "x"}),
}

NEEDED = {"take_many": {"n": 1}, "swap": {"to": ("new",)}, "try_swap": {"to": ("new",)}}
"""What a verb has to be given besides the template."""

IN_TRANSACTIONS = (
    "take",
    "read",
    "try_take",
    "try_read",
    "take_all",
    "read_all",
    "take_many",
    "swap",
    "try_swap",
    "count",
)

VERBS = (
    *IN_TRANSACTIONS,
    "claim",
    "try_claim",
    "wait_none",
    "consume",
    "finish",
    "scan",
    "subscribe",
    "dead",
    "requeue",
    "explain",
)

PUTS = {"put": ("a", 1), "put_all": ([("a", 1)],), "put_if_absent": ("a", 1)}


@pytest.fixture
def space(new_url):
    """Open an empty space: the words do not depend on its kind."""
    with ts.connect(new_url("mem")) as space:
        yield space


REFUSALS = (TypeError, ValueError, ts.TupeloError)


def told(call):
    """Return the class of what a synchronous call raises, and what it says."""
    with pytest.raises(REFUSALS) as caught:
        for _ in call() or ():
            pass
    return caught.type, str(caught.value)


async def told_to_tasks(call):
    """Return the same of a call of `tupelo.aio`."""
    with pytest.raises(REFUSALS) as caught:
        given = call()
        if inspect.isasyncgen(given):
            await anext(given)
        await given
    return caught.type, str(caught.value)


def told_by_both(space, within, verb, fields, keywords):
    """Return what a mistake is told as by the synchronous face, and by its twin."""
    with space.transaction() as t:
        plain = t if within == "transaction" else space
        expected = told(lambda: getattr(plain, verb)(*fields, **keywords))
        t.abort()

    async def main():
        async with aio.connect(space.url) as shared, shared.transaction() as t:
            twin = t if within == "transaction" else shared
            return await told_to_tasks(lambda: getattr(twin, verb)(*fields, **keywords))

    return expected, asyncio.run(main())


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize(
    ("within", "verb"),
    [("space", verb) for verb in VERBS] + [("transaction", verb) for verb in IN_TRANSACTIONS],
)
def test_a_mistake_in_a_template_is_told_in_the_same_words(space, within, verb, mistake):
    fields, keywords = MISTAKES[mistake]
    keywords = NEEDED.get(verb, {}) | keywords
    expected, to_tasks = told_by_both(space, within, verb, fields, keywords)
    assert to_tasks == expected
    assert space.count(REST) == 0
    assert space.stat()["waiters"] == 0


@pytest.mark.parametrize("keywords", [{"tiemout": 1}, {"ttl": 3}, {"order": "fifo"}], ids=str)
@pytest.mark.parametrize("verb", PUTS)
def test_a_mistake_in_a_put_is_told_in_the_same_words(space, verb, keywords):
    expected, to_tasks = told_by_both(space, "space", verb, PUTS[verb], keywords)
    assert to_tasks == expected
    assert space.count(REST) == 0


@pytest.mark.parametrize("keywords", [{"tiemout": 1}, {"ttl": 3}, {"timeout": 1}], ids=str)
@pytest.mark.parametrize("verb", ["put", "put_all"])
def test_a_mistake_in_a_put_of_a_transaction_is_told_in_the_same_words(space, verb, keywords):
    expected, to_tasks = told_by_both(space, "transaction", verb, PUTS[verb], keywords)
    assert to_tasks == expected
    assert space.count(REST) == 0


WAITS = {
    "take": (("never", int), {}),
    "read": (("never", int), {"order": "lifo"}),
    "claim": ((Job,), {"status": "done"}),
    "take_many": (("there", int), {"n": 3}),
    "take_many at least": (("there", int), {"n": 9, "at_least": 4, "where": "f[1] > 0"}),
    "take_many of a class": ((Job,), {"n": 1, "status": "done"}),
    "swap": (("never", str), {"to": ("new",), "where": "f[1] != 'x'"}),
    "swap of a class": ((Job,), {"to": Job(2), "id": 2}),
    "wait_none": (("there", int), {}),
    "wait_none of a class": ((Job,), {"status": "ready"}),
}


@pytest.mark.parametrize("timeout", [0, 0.01, 0.25])
@pytest.mark.parametrize(
    ("within", "wait"),
    [("space", wait) for wait in WAITS]
    + [("transaction", wait) for wait in WAITS if wait.split()[0] in IN_TRANSACTIONS],
)
def test_a_wait_in_vain_is_told_in_the_same_words(space, within, wait, timeout):
    fields, keywords = WAITS[wait]
    before = [("there", 1), ("there", 2), Job(1)]
    space.put_all(before)
    keywords = {**keywords, "timeout": timeout}
    expected, to_tasks = told_by_both(space, within, wait.split()[0], fields, keywords)
    assert expected[0] is ts.Timeout
    assert f"{timeout} s in {space.url}" in expected[1]
    assert to_tasks == expected
    assert space.take_all(REST) == before
    assert space.stat()["waiters"] == 0


def test_an_event_that_does_not_come_is_told_in_the_same_words(space):
    with space.subscribe("never") as events:
        expected = told(lambda: events.next(timeout=0.01))

    async def main():
        async with aio.connect(space.url) as shared, shared.subscribe("never") as events:
            return await told_to_tasks(lambda: events.next(timeout=0.01))

    assert asyncio.run(main()) == expected


@pytest.mark.parametrize("within", ["space", "transaction"])
def test_a_wait_looks_for_what_to_explain_once_and_not_whenever_something_was_put(
    space, within, monkeypatch
):
    made = []
    make = errors.make

    def counted(*arguments):
        made.append(arguments)
        return make(*arguments)

    monkeypatch.setattr(errors, "make", counted)

    async def main():
        async with aio.connect(space.url) as shared, shared.transaction() as t:
            twin = t if within == "transaction" else shared
            putting = asyncio.create_task(put_one_by_one(shared))
            taken = await twin.take_many("n", int, n=100, timeout=60)
            assert taken == [("n", n) for n in range(100)]
            await putting
            assert made == []
            with pytest.raises(errors.Timeout):
                await twin.take_many("n", int, n=100, timeout=0)

    async def put_one_by_one(shared):
        for n in range(100):
            for _ in range(5):
                await asyncio.sleep(0)  # the other task has its turn
            await shared.put("n", n)

    asyncio.run(main())
    assert len(made) == 1
