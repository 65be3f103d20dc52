"""Wrong arguments: each is named, with what would be right, and nothing happens."""

import asyncio
from datetime import timedelta

import pytest

import tupelo as ts
from tupelo import REST, F, aio

SPACES_OF_ASYNCIO = {
    "move_to": lambda shared, other: shared.move_to(other, "job", int),
    "copy_to": lambda shared, other: shared.copy_to(other, "job", int),
    "transaction": lambda shared, other: shared.transaction(other),
    "on": lambda shared, other: shared.transaction().on(other),
}


@pytest.mark.parametrize("verb", SPACES_OF_ASYNCIO)
@pytest.mark.parametrize(("other", "kind"), [(None, "NoneType"), ("mem://x", "str")])
def test_what_is_no_space_of_asyncio_is_named(space, verb, other, kind):
    async def main():
        async with aio.connect(space.url) as shared:
            for wrong, name in ((other, kind), (space, "tupelo.Space")):
                problem = rf"{verb}\(\) is given a {name}: give a space of tupelo.aio.connect"
                with pytest.raises(TypeError, match=problem):
                    given = SPACES_OF_ASYNCIO[verb](shared, wrong)
                    await given
            with pytest.raises(TypeError, match=r"not a tupelo\.aio\.Space"):
                space.transaction(shared)

    asyncio.run(main())


def test_what_can_not_be_gone_through_is_named(space):
    async def main():
        async with aio.connect(space.url) as shared:
            with pytest.raises(TypeError, match=r"the argument of put_all\(\) has the type int"):
                await shared.put_all(7)
            with pytest.raises(TypeError, match="spaces has the type int: give a list"):
                await aio.search(7, "job")

    asyncio.run(main())
    with pytest.raises(TypeError, match="spaces has the type int: give a list"):
        ts.search(7, "job")
    with pytest.raises(TypeError, match="schema has the type int: give a list of classes"):
        ts.connect(space.url, schema=7)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_wrong_timeout_within_a_transaction_of_tasks_is_named_and_takes_nothing(space, timeout):
    async def main():
        async with aio.connect(space.url) as shared, shared.transaction() as t:
            assert repr(t) == f"<aio.Transaction {space.url}, open>"
            for wait in (
                t.take("there", timeout=timeout),
                t.read("there", timeout=timeout),
                t.swap("there", to=("other",), timeout=timeout),
                t.take_many("there", n=1, timeout=timeout),
            ):
                with pytest.raises((TypeError, ValueError), match=r"timeout (is|has)"):
                    await wait

    space.put("there")
    asyncio.run(main())
    assert space.read_all(REST) == [("there",)]


WAITING = {
    "take": ("job", int),
    "read": ("job", int),
    "wait_none": ("there",),
}


@pytest.mark.parametrize("verb", WAITING)
@pytest.mark.parametrize(
    ("timeout", "error", "message"),
    [
        (-1, ValueError, "timeout is -1: give seconds from 0 on, or None to wait for ever"),
        (-0.5, ValueError, "timeout is -0.5: give seconds from 0 on"),
        (timedelta(seconds=-1), ValueError, "timeout is -1: give seconds from 0 on"),
        (float("nan"), ValueError, "timeout is NaN: give seconds from 0 on"),
        ("3", TypeError, "timeout has the type str: give seconds as int or float, a timedelta"),
        (True, TypeError, "timeout has the type bool: give seconds"),
        ([], TypeError, "timeout has the type list: give seconds"),
    ],
    ids=str,
)
def test_a_wrong_timeout_is_named(space, verb, timeout, error, message):
    space.put("there")
    with pytest.raises(error, match=message):
        getattr(space, verb)(*WAITING[verb], timeout=timeout)
    with pytest.raises(error, match=message):
        space.take_many("job", n=1, timeout=timeout)
    with pytest.raises(error, match=message):
        space.swap("job", to=("x",), timeout=timeout)
    with pytest.raises(error, match=message):
        space.claim("job", timeout=timeout)
    with pytest.raises(error, match=message.replace("timeout", "idle")):
        space.consume("job", idle=timeout)
    assert space.read_all(REST) == [("there",)]
    assert space.stat()["waiters"] == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s: s.take("a", timout=3),
            TypeError,
            r'take\(\) has no keyword argument "timout"; ',
        ),
        (lambda s: s.take("a", timout=3), TypeError, r'did you mean "timeout"\?'),
        (lambda s: s.take("a", x=3), TypeError, r"\(it takes: timeout, order, sync, where\)"),
        (lambda s: s.put("a", ttl=3), TypeError, r'put\(\) has no keyword argument "ttl"'),
        (lambda s: s.put("a", lease=0), ValueError, "lease is 0: give seconds above 0, or None to"),
        (lambda s: s.put("a", lease=-1), ValueError, "lease is -1: .* keep the tuple for ever"),
        (lambda s: s.put("a", lease="5s"), TypeError, "lease has the type str: give seconds as"),
        (lambda s: s.put("a", lease=True), TypeError, "lease has the type bool: give seconds"),
        (lambda s: s.put("a", lease=1e10), ValueError, "lease is 10000000000.0, over the limit"),
        (lambda s: s.put("a", lease=1e300), ValueError, r"lease is 1e\+300, over .*: give less"),
        (lambda s: s.claim("a", ttl=1e300), ValueError, r"ttl is 1e\+300, over .*: give less$"),
        (lambda s: s.put("a", after=-1), ValueError, "after is -1: give seconds from 0 on, or N"),
        (lambda s: s.put_all([], lease=0), ValueError, "lease is 0: give seconds above 0"),
        (lambda s: s.put_all([], after="x"), TypeError, "after has the type str: give seconds"),
        (lambda s: s.claim("a", ttl=0), ValueError, "ttl is 0: give seconds above 0$"),
        (lambda s: s.claim("a", ttl=None), TypeError, "ttl has the type NoneType: give seconds"),
        (lambda s: s.claim("a", ttl=False), TypeError, "ttl has the type bool: give seconds"),
        (lambda s: s.claim("a", max_attempts=0), ValueError, "max_attempts is 0: give a number f"),
        (lambda s: s.claim("a", max_attempts=-1), ValueError, "max_attempts is -1: give a number"),
        (lambda s: s.claim("a", max_attempts=True), TypeError, "max_attempts is True: give how"),
        (lambda s: s.claim("a", max_attempts=1.0), TypeError, "max_attempts is 1.0: give how"),
        (lambda s: s.claim("a", max_attempts=2**40), ValueError, "from 1 to 4294967295, or None"),
        (lambda s: s.claim("a", atempts=3), TypeError, r'did you mean "max_attempts"\?'),
        (
            lambda s: s.dead("a", n=3),
            TypeError,
            r"dead\(\) has no keyword argument .* \(it takes: where\)",
        ),
        (lambda s: s.requeue(("a",)), TypeError, "the only argument is a tuple"),
        (
            lambda s: s.count("a", n=3),
            TypeError,
            r"count\(\) has no keyword argument .* \(it takes: where\)",
        ),
        (lambda s: s.take("a", order="oldest"), ValueError, "order is 'oldest': give \"fifo\""),
        (lambda s: s.take("a", order=None), TypeError, 'order is None: give "fifo"'),
        (lambda s: s.take("a", order=F > 3), TypeError, "order is <Formal > 3>: give"),
        (lambda s: s.take_all("a", limit=-1), ValueError, "limit is -1: give a number from 0 on"),
        (lambda s: s.take_all("a", limit="x"), TypeError, "limit is 'x': give how many, as an int"),
        (lambda s: s.take_all("a", limit=1.0), TypeError, "limit is 1.0: give how many, as an int"),
        (lambda s: s.take_all("a", limit=2**80), ValueError, "no space has so many tuples"),
        (lambda s: s.take_many("a"), TypeError, r"take_many\(\) needs n, the number of tuples"),
        (lambda s: s.take_many("a", n=None), TypeError, "n is None: give how many, as an int"),
        (lambda s: s.take_many("a", n=1, at_least=2), ValueError, "at_least is 2, more than n"),
        (lambda s: s.put_all(), TypeError, r"put_all\(\) takes one argument, an iterable"),
        (lambda s: s.put_all([], []), TypeError, r"put_all\(\) takes one argument, an iterable"),
        (lambda s: s.put_all(3), TypeError, "has the type int: give an iterable of tuples"),
        (lambda s: s.put_all(["ab"]), TypeError, r"item 0 has the type str: put_all\(\) is given"),
        (lambda s: s.put_all([(), []]), TypeError, "item 1 has the type list"),
        (lambda s: s.put_if_absent("a", unless="a"), TypeError, "unless has the type str: give a"),
        (lambda s: s.stat(1), TypeError, r"stat\(\) takes no arguments, got 1"),
        (lambda s: s.put("a", timeout="x"), TypeError, "timeout has the type str: give seconds"),
        (lambda s: s.put("a", timeout=-1), ValueError, "timeout is -1: give seconds from 0 on"),
        (lambda s: s.put(int), ts.NotEncodable, "field 0 is the type"),
        (lambda s: s.take("a", object), ts.TemplateError, "field 1 is the class <class 'object'>"),
        (lambda s: s.take([...]), ts.NotEncodable, r"field 0\[0\] is the Ellipsis"),
    ],
)
def test_a_wrong_argument_is_named(space, call, error, message):
    with pytest.raises(error, match=message):
        call(space)
    assert space.count(REST) <= 1
    assert space.stat()["waiters"] == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c, _: c.extend(0), ValueError, "ttl is 0: give seconds above 0, or None to have"),
        (lambda c, _: c.extend("3"), TypeError, "ttl has the type str: give seconds"),
        (lambda c, _: c.abort(3), TypeError, "reason has the type int: give a str"),
        (lambda c, _: c.put(("a",)), TypeError, "the only argument is a tuple"),
        (lambda _, e: e.renew(-1), ValueError, "seconds is -1: give seconds above 0, or None to"),
        (lambda _, e: e.renew(True), TypeError, "seconds has the type bool: give seconds"),
    ],
)
def test_a_wrong_argument_of_a_claim_or_a_lease_is_named(space, call, error, message):
    lease = space.put("a", lease=60)
    claim = space.claim("a")
    with pytest.raises(error, match=message):
        call(claim, lease)
    claim.abort()
    assert space.read_all(REST) == [("a",)]


def test_an_exception_in_the_callers_own_code_passes_through(space):
    class Broken:
        def __reduce__(self):
            raise KeyboardInterrupt

    def tuples():
        yield ("a",)
        raise KeyError(3)

    with pytest.raises(KeyboardInterrupt):
        space.put("x", Broken())
    with pytest.raises(KeyError):
        space.put_all(tuples())
    assert space.count(REST) == 0


def test_verbs_refuse_a_foreign_self(space):
    with pytest.raises(TypeError):
        ts.Space.put(3, "job")
    with pytest.raises(TypeError):
        ts.Space.put()
    ts.Space.put(space, "job")
    assert space.take("job") == ("job",)


def test_a_name_that_is_a_directory_or_foreign_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("shm://..", "shm://.", "shm://a\0b", "mem:///etc"):
        with pytest.raises(ValueError, match="TUP-019"):
            ts.connect(url)
