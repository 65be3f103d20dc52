"""update: a tuple replaced by what a function makes of it, in one step."""

import asyncio
import threading
from dataclasses import dataclass

import pytest

import tupelo as ts
from tupelo import REST, aio


def add_one(old):
    return ("counter", old[1] + 1)


def test_what_is_updated_is_read_and_changed_in_one_step(space):
    space.put("counter", 0)

    def work():
        for _ in range(50):
            space.update("counter", int, to=add_one)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert space.read_all(REST) == [("counter", 200)]
    with pytest.raises(ZeroDivisionError):
        space.update("counter", int, to=lambda _: 1 / 0)
    with pytest.raises(TypeError, match="to returned a int: return the new tuple"):
        space.update("counter", int, to=lambda old: old[1])
    with pytest.raises(ts.Timeout):
        space.update("none", int, to=add_one, timeout=0)
    with pytest.raises(TypeError, match="to has the type int: give a function"):
        space.update("counter", int, to=7)
    with pytest.raises(TypeError, match="needs to, the function"):
        space.update("counter", int)
    assert space.read_all(REST) == [("counter", 200)]  # X5

    async def main():
        async with aio.connect(space.url) as shared:
            assert await shared.update("counter", int, to=add_one, timeout=1) == ("counter", 201)

    asyncio.run(main())


@dataclass
class Account:
    id: int
    balance: int = 0


def test_an_entry_is_updated_by_its_fields(space):
    space.put_all([Account(1), Account(2)])
    richer = space.update(Account, id=2, to=lambda old: Account(old.id, old.balance + 5))
    assert richer == Account(2, 5)
    assert space.update(Account, where="balance > 3", to=lambda old: ("gone", old.id)) == (
        "gone",
        2,
    )
    assert space.take_all(Account) == [Account(1)]
