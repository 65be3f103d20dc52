"""Counter and Register: each change happens once, in one step, whoever dies."""

import asyncio
import inspect
import subprocess
import sys
import threading

import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo import batteries as blocking
from tupelo.aio import batteries as awaited
from tupelo.batteries import Counter, Register
from tupelo.batteries.verbs import AtOnce, run


def test_a_counter_begins_with_0_and_stores_nothing_until_it_is_added_to(space):
    hits = Counter(space, "hits")
    assert hits.value == 0
    assert space.count(REST) == 0
    hits += 1
    hits += 2
    hits -= 5
    assert isinstance(hits, Counter)
    assert hits.value == -2
    assert hits.add() == -1
    assert hits.add(2**70) == 2**70 - 1
    assert hits.reset(7) == 2**70 - 1
    assert hits.reset() == 7
    assert hits.name == "hits"
    assert repr(hits) == f"<Counter 'hits' in {space.url}>"


def test_the_tuples_of_counters_and_registers_are_those_of_the_page(space):
    Counter(space, "hits").add(3)
    Register(space, "best", default=9).set(4)
    Register(space, "best", default=9).set(5)
    assert sorted(space.take_all(REST)) == [
        ("tupelo.counter", "hits", 3),
        ("tupelo.register", "best", 2, 5),
    ]
    space.put("tupelo.counter", "hits", 40)
    assert Counter(space, "hits").add(2) == 42
    space.put("tupelo.register", "best", 7, "of another language")
    assert Register(space, "best", default="").value == "of another language"
    space.put("tupelo.register", "first", 0, 4)
    assert Register(space, "first", default=9).update(lambda old: old + 1) == 5
    assert space.take("tupelo.register", "first", REST) == ("tupelo.register", "first", 1, 5)


def test_counters_of_different_names_are_different(space):
    Counter(space, "a").add(1)
    assert Counter(space, "b").value == 0


def in_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_what_many_threads_add_nothing_is_lost(space):
    """O8: the first addition, which puts the tuple, races too."""
    hits = Counter(space, "hits")
    in_threads(4, lambda: [hits.add(1) for _ in range(250)])
    assert hits.value == 1000


def test_of_what_many_threads_update_nothing_is_lost(space):
    register = Register(space, "sum", default=0)
    in_threads(4, lambda: [register.update(lambda old: old + 1) for _ in range(250)])
    assert register.value == 1000


def test_the_default_of_a_register_is_a_copy_for_each_who_asks(space):
    register = Register[list[int]](space, "none yet", default=[])
    register.value.append(1)
    assert register.value == []
    assert register.update(lambda old: [*old, 2]) == [2]


def test_a_value_of_changing_kinds_is_always_there(space):
    """A reader never finds nothing between two values of different shapes."""
    register = Register[object](space, "state", default="default")
    register.set(0)
    values = [1, 2.5, "text", b"bytes", None, [1, {"a": 2}], True]
    stop = threading.Event()

    def change():
        while not stop.is_set():
            for value in values:
                register.set(value)

    thread = threading.Thread(target=change)
    thread.start()
    seen = [register.value for _ in range(2000)]
    stop.set()
    thread.join()
    assert "default" not in seen


def test_an_update_that_raises_changes_nothing(space):
    register = Register(space, "best", default=1)
    register.set(2)
    with pytest.raises(ZeroDivisionError):
        register.update(lambda old: old // 0)
    with pytest.raises(ts.NotEncodable):
        Register[object](space, "best", default=1).update(lambda _: bytearray(b"no"))
    assert register.value == 2


def test_an_update_that_was_overtaken_is_done_again_with_the_new_value(space):
    register = Register(space, "names", default=())
    seen = []

    def change(old):
        if not seen:
            register.set(("faster",))
        seen.append(old)
        return (*old, "slower")

    assert register.update(change) == ("faster", "slower")
    assert seen == [(), ("faster",)]


def test_a_register_can_hold_what_no_template_can_ask_for_by_value(space):
    register = Register(space, "nan", default=float("nan"))
    register.update(lambda old: old)
    assert register.update(lambda _: 3.0) == 3.0
    arrays = Register[object](space, "array", default=None)
    arrays.set(memoryview(b"abc"))
    arrays.update(lambda _: "no array any more")
    assert arrays.value == "no array any more"


ADDS = """
import sys
import tupelo as ts
from tupelo.batteries import Counter, Register

space = ts.connect(sys.argv[1], create=False)
both, all = Counter(space, "both"), Register(space, "all", default=0)
mine, own = Counter(space, sys.argv[2]), Register(space, sys.argv[2], default=0)
while True:
    both += 1
    mine += 1
    all.update(lambda old: old + 1)
    own.update(lambda old: old + 1)
"""


def test_processes_that_are_killed_while_they_add_lose_no_other_ones_additions(
    shm, shm_url, eventually
):
    """C1: of the last addition of each it is open whether it happened; of no other."""
    names = [f"adder {number}" for number in range(6)]
    for pair in zip(names[::2], names[1::2], strict=True):
        children = [subprocess.Popen([sys.executable, "-c", ADDS, shm_url, name]) for name in pair]
        eventually(lambda pair=pair: all(Counter(shm, name).value > 50 for name in pair))
        for child in children:
            child.kill()
            child.wait()
    open_ones = Counter(shm, "both").value - sum(Counter(shm, name).value for name in names)
    assert 0 <= open_ones <= len(names)
    registers = [Register(shm, name, default=0).value for name in names]
    assert 0 <= Register(shm, "all", default=0).value - sum(registers) <= len(names)


def test_tasks_and_threads_share_a_counter(space):
    async def main():
        async with aio.connect(space.url) as shared:
            hits, best = awaited.Counter(shared, "hits"), awaited.Register(shared, "r", default=0)
            await asyncio.gather(*(hits.add(n) for n in range(10)))
            assert await hits.get() == 45
            assert await hits.reset() == 45
            await best.set(3)
            assert await best.update(lambda old: old + 1) == 4

    asyncio.run(main())
    assert Counter(space, "hits").value == 0
    assert Register(space, "r", default=0).value == 4


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda _: Counter("shm://jobs", "a"), "space has the type str: give one of tupelo.conn"),
        (lambda s: Counter(s, 7), "name has the type int: give a str"),
        (lambda s: Counter(s, "a").add(1.5), "amount has the type float: give an int"),
        (lambda s: Counter(s, "a").add(True), "amount has the type bool: give an int"),
        (lambda s: Counter(s, "a").__iadd__(True), "amount has the type bool: give an int"),
        (lambda s: Counter(s, "a").__isub__(True), "amount has the type bool: give an int"),
        (lambda s: Counter(s, "a").__isub__("3"), "amount has the type str: give an int"),
        (lambda s: Counter(s, "a").reset("0"), "value has the type str: give an int"),
        (lambda s: Register(s, None, default=0), "name has the type NoneType: give a str"),
        (lambda s: awaited.Counter(s, "a"), "blocks: give a space of tupelo.aio.connect, or"),
        (lambda _: awaited.Counter("shm://jobs", "a"), "space has the type str: give one of tup"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_happens(space, call, problem):
    with pytest.raises(TypeError, match=problem):
        call(space)
    assert space.count(REST) == 0


def test_a_blocking_battery_says_so_if_it_is_given_an_awaited_space(url):
    async def main():
        async with aio.connect(url) as shared:
            with pytest.raises(TypeError, match=r"is awaited: give a space of tupelo\.connect"):
                Counter(shared, "a")

    asyncio.run(main())


def test_a_coroutine_that_needs_a_loop_is_refused_by_the_blocking_face(space):
    async def sleeps():
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run(sleeps())
    assert run(AtOnce(space).count(REST)) == 0


def test_batteries_for_blocking_programs_do_not_import_asyncio():
    code = "import sys, tupelo.batteries; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def functions(battery):
    """What a battery can do, with the names of the arguments of each."""
    members = {name: getattr(battery, name) for name in dir(battery) if not name.startswith("_")}
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in {"": battery, **members}.items()
        if inspect.isroutine(member)
    }


MADE_BY_US = {"DeadItems", "Delivery", "Permit"}
"""What a program gets, and does not make."""


def test_both_faces_have_the_same_batteries():
    assert blocking.__all__ == awaited.__all__
    for name in awaited.__all__:
        ours, theirs = getattr(blocking, name), getattr(awaited, name)
        if ours is theirs:
            continue
        known = functions(theirs)
        assert {name: known.get(name) for name in functions(ours)} == functions(ours), name
        if name not in MADE_BY_US:
            arguments = [list(inspect.signature(one).parameters) for one in (ours, theirs)]
            assert arguments[0] == arguments[1], name


CHANGES = {
    "counter": lambda face, space: face.Counter(space, "it").add(1),
    "register": lambda face, space: face.Register(space, "it", default=0).set(1),
    "latch": lambda face, space: face.Latch(space, "it", count=2).count_down(),
    "barrier": lambda face, space: face.Barrier(space, "it", parties=1).wait(),
}
"""What changes a tuple that it has read."""


@pytest.mark.parametrize("verb", ["take", "read"])
@pytest.mark.parametrize("battery", CHANGES)
def test_a_battery_whose_tuple_a_transaction_has_waits_and_stops_no_loop(battery, verb):
    change = CHANGES[battery]

    async def main():
        async with aio.connect("mem://held", fresh=True) as space:
            await change(awaited, space)
            with pytest.raises(ZeroDivisionError):
                async with space.transaction() as t:
                    await getattr(t, verb)(REST)
                    changing = asyncio.create_task(change(awaited, space))
                    for _ in range(10):
                        await asyncio.sleep(0.001)
                        assert not changing.done()
                    raise ZeroDivisionError
            await changing
            return await space.read_all(REST)

    with ts.connect("mem://twice", fresh=True) as space:
        change(blocking, space)
        change(blocking, space)
        assert asyncio.run(main()) == space.read_all(REST)
