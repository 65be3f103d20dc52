"""put_all in steps: more tuples than one step can put."""

import asyncio

import pytest

import tupelo as ts
from tupelo import REST, aio, stepping


def test_any_number_of_tuples_is_put_in_steps_and_told(space, monkeypatch):
    monkeypatch.setattr(stepping, "STEP", 10)
    told = []
    assert space.put_all((("n", n) for n in range(25)), atomic=False, progress=told.append) == 25
    assert told == [10, 20, 25]
    assert space.read_all("n", int) == [("n", n) for n in range(25)]
    with pytest.raises(ts.NotEncodable, match="tuple 3, field 1") as caught:
        space.put_all([("m", 0)] * 13 + [("m", bytearray())], atomic=False)
    assert caught.value.__notes__ == ["10 tuples were put by the steps before"]
    assert space.count("m", int) == 10
    assert space.put_all([], atomic=False) == 0
    assert space.put_all([("l", 1)], atomic=False, lease=60) == 1
    assert sum(shape["leased"] for shape in space.stat()["shapes"]) == 1


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"atomic": 1}, TypeError, "atomic is 1: give True or False"),
        ({"progress": print}, ValueError, "there is one step only: give atomic=False, too"),
    ],
)
def test_what_makes_no_sense_of_steps_is_refused(space, options, error, problem):
    with pytest.raises(error, match=problem):
        space.put_all([("n", 1)], **options)
    with pytest.raises(TypeError, match="has the type int: give an iterable of tuples"):
        space.put_all(7, atomic=False)
    assert space.count(REST) == 0


def test_asyncio_puts_in_steps_too(space, monkeypatch):
    monkeypatch.setattr(stepping, "STEP", 10)

    async def main():
        async with aio.connect(space.url) as shared:
            told = []
            tuples = (("n", n) for n in range(25))
            assert await shared.put_all(tuples, atomic=False, progress=told.append) == 25
            assert told == [10, 20, 25]
            with pytest.raises(ValueError, match="give atomic=False, too"):
                await shared.put_all([("n", 1)], progress=print)

    asyncio.run(main())
    assert space.count("n", int) == 25
