"""Whatever a system alters of a result, its time does not count: each experiment sees it."""

import itertools
import queue
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

import tupelo as ts
from tupelo_bench.backends.base import Schema
from tupelo_bench.backends.batches import SelfTimed
from tupelo_bench.backends.space import PrivateSpace
from tupelo_bench.experiments import native
from tupelo_bench.experiments.cases import (
    matrix_blocks,
    matrix_rows,
    matrix_summed,
    ocean,
    password,
    skeleton,
    sorting,
    visits,
)
from tupelo_bench.experiments.mem import client as mem
from tupelo_bench.experiments.mem.entries import ENTRIES, KEYED, EntryPlan, KeyPlan
from tupelo_bench.experiments.rpc import calls, many
from tupelo_bench.experiments.settle import phases
from tupelo_bench.experiments.warming import WarmUp
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.workers import Bench, WrongResultError
from tupelo_bench.runner import started

PATIENCE_S = 10
WARM_UP = WarmUp(8)
HONEST = ("", "", 0)
INTEGER = ENTRIES[1]
OWNERS = itertools.count()
SERVERLESS = SimpleNamespace(server_pid=None)
NOBODY_WAITS = SimpleNamespace(wait=lambda: 0)


def altered(value):
    """Another value of the same type."""
    if isinstance(value, bytes):
        return value + b"0"
    return value + "0" if isinstance(value, str) else value + 1


class Liar:
    """A space that alters a field of what is taken, or read."""

    def __init__(self, space, lie):
        self.space = space
        self.how, self.tag, self.field = lie
        self.put, self.put_all = space.put, space.put_all
        self.count, self.close = space.count, space.close

    def _told(self, how, found):
        tags = [] if found is None else [field for field in found if isinstance(field, str)]
        if how != self.how or self.tag not in tags[:1]:
            return found
        return (*found[: self.field], altered(found[self.field]), *found[self.field + 1 :])

    def take(self, *template):
        return self._told("take", self.space.take(*template))

    def try_take(self, *template):
        return self._told("take", self.space.try_take(*template))

    def read(self, *template):
        return self._told("read", self.space.read(*template))

    def try_read(self, *template):
        return self._told("read", self.space.try_read(*template))


class Lying(PrivateSpace):
    """A system with such spaces, for the threads of one process."""

    lie = HONEST

    def __init__(self):
        super().__init__()
        self._owner = next(OWNERS)  # a case that failed leaves tuples behind under its names

    def open(self, space):
        return Liar(super().open(space), self.lie)

    def search(self, *_):
        return None


def outcome(lie, schema, spaces, targets):
    """What the first of these functions that failed raised, None if all were content."""
    with started(Lying) as peer:
        peer.lie = lie
        peer.create(schema, spaces, 1 << 20)
        start, ended = threading.Barrier(len(targets)), queue.Queue()

        def run(number, function, arguments):
            try:
                function(Bench(number, Profiler(), start), peer, *arguments)
            except Exception as error:  # noqa: BLE001 - it is what is asked for
                ended.put(error)
            else:
                ended.put(None)

        for number, (function, *arguments) in enumerate(targets):
            threading.Thread(target=run, args=(number, function, arguments), daemon=True).start()
        found = None
        for _ in targets:
            found = ended.get(timeout=PATIENCE_S)
            if found is not None:
                break
        start.abort()
        with suppress(ts.SpaceNotFound):
            peer.drop()
        return found


PASSWORD = password.Plan(200, 2, key_first=False, seed=1)
CASES = {
    "password": (password, PASSWORD, password.schema(key_first=False)),
    "sorting": (sorting, sorting.Plan(2_000, 2, seed=1), sorting.SCHEMA),
    "ocean": (ocean, ocean.Plan(20, 2, 2, "round robin", seed=1), ocean.SCHEMA),
    "matrix rows": (
        matrix_rows, matrix_rows.Plan(6, 2, all_b_at_one=False, seed=1), matrix_rows.SCHEMA,
    ),
    matrix_summed.CASE: (
        matrix_summed, matrix_rows.Plan(6, 2, all_b_at_one=False, seed=1), matrix_summed.SCHEMA,
    ),
    "matrix blocks": (matrix_blocks, matrix_blocks.Plan(4, 2, 2, seed=1), matrix_blocks.SCHEMA),
}  # fmt: skip


def of_case(name, lie):
    case, plan, schema = CASES[name]
    targets = [(case.master, plan, WARM_UP), *[(case.worker, plan, WARM_UP)] * plan.workers]
    return outcome(lie, skeleton.with_warm_up(schema), skeleton.names(plan.workers), targets)


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_content_with_a_system_that_alters_nothing(case):
    assert of_case(case, HONEST) is None


@pytest.mark.parametrize(
    ("case", "lie"),
    [
        ("password", ("read", "hash_set", 2)),
        ("password", ("take", "hash_set", 2)),  # what is withdrawn at the end, by a key
        ("sorting", ("take", "sorted_part", 1)),
        ("ocean", ("take", "hand out", 2)),
        ("ocean", ("take", "oceanModel", 4)),
        ("matrix rows", ("read", "matrixB", 2)),
        ("matrix rows", ("take", "row", 4)),
        ("matrix rows", ("take", "matrixC", 2)),
        ("matrix rows", ("take", "matrixC", 3)),
        (matrix_summed.CASE, ("read", "matrixB", 2)),
        (matrix_summed.CASE, ("take", "matrixC", 3)),
        ("matrix blocks", ("read", "matrixA", 3)),
    ],
)
def test_a_case_refuses_what_was_altered(case, lie):
    assert isinstance(of_case(case, lie), WrongResultError)


@pytest.mark.parametrize("wrong", [None, ("matrixB", 0, np.zeros(4))])
def test_rows_that_are_read_again_are_compared(wrong):
    plan = matrix_rows.Plan(4, 2, all_b_at_one=False, seed=1)
    _, b = plan.matrices()

    class Rows:
        def try_read(self, tag, row, _):
            return wrong if row == 3 else (tag, row, b[row])

    worker = SimpleNamespace(
        spaces=[Rows(), Rows()], backend=PrivateSpace(), bench=Bench(1, Profiler(), None)
    )
    with pytest.raises(WrongResultError, match="row 3"):
        matrix_summed.read_again(worker, plan, b)


ENTRY_PLAN = EntryPlan(fill=3, cycles=1, entry=INTEGER)
KEY_PLAN = KeyPlan(fill=3, cycles=1, field="first")


@pytest.mark.parametrize(
    ("function", "plan", "schema", "lie"),
    [
        (mem.client, ENTRY_PLAN, INTEGER.schema, ("take", "Integer", 1)),
        (mem.key_client, KEY_PLAN, Schema((KEYED["first"],)), ("take", "keyed-first", 2)),
    ],
)
def test_what_is_put_and_taken_by_one_client_is_compared(function, plan, schema, lie):
    target = [(function, plan, 1)]
    assert outcome(HONEST, schema, ("mem",), target) is None
    assert isinstance(outcome(lie, schema, ("mem",), target), WrongResultError)


@SelfTimed.register
class Idle:
    """A space that says that it took and counted what it was to, and hands over less."""

    def __init__(self, missing):
        self.missing = missing

    def put_all(self, _tuples):
        pass

    def put_each(self, _tuples):
        return 1

    def take_each(self, templates):
        return 1, [("Integer", 1)] * (len(templates) - self.missing)

    def count(self, *_):
        return ENTRY_PLAN.fill

    def close(self):
        pass


@pytest.mark.parametrize("missing", [1, mem.BATCH])
def test_who_does_less_than_was_asked_is_not_the_fastest(missing):
    """Each tuple that came is right, and so are all of none."""
    idle = Idle(missing)
    backend = SimpleNamespace(open=lambda _: idle, bridge_s=lambda _: None)
    with pytest.raises(WrongResultError, match="100 takes were asked for"):
        mem.client(Bench(0, Profiler(), NOBODY_WAITS), backend, ENTRY_PLAN, 1)
    with pytest.raises(WrongResultError, match="50 takes were asked for"):
        phases.fetch(Idle(min(missing, 50)), ("Integer", int), 50)


CALL = calls.Plan(256, 0, exchanges=1, warm_up=0)


@pytest.mark.parametrize("request_", [b"q" * 255, b"q" * 255 + b"x", b""])
def test_a_server_refuses_a_request_that_came_altered(request_, monkeypatch):
    servant = SimpleNamespace(serve=lambda answer: answer(request_))
    monkeypatch.setattr(calls, "calls", lambda _: SimpleNamespace(servant=lambda _: servant))
    with pytest.raises(WrongResultError):
        calls.serve(Bench(0, Profiler(), NOBODY_WAITS), None, CALL)


def only(**operations):
    """A backend of one space, which can do no more than that."""
    space = SimpleNamespace(put=lambda *_: None, close=lambda: None, **operations)
    return SimpleNamespace(open=lambda _: space)


@pytest.mark.parametrize("news", [(1, b"n" * 256), (0, b"n" * 255 + b"x")])
def test_a_reader_refuses_another_message(news):
    backend = only(read=lambda tag, *_: (tag, *news))
    with pytest.raises(WrongResultError):
        many.hear(Bench(0, Profiler(), NOBODY_WAITS), backend, CALL)


def test_what_was_heard_has_to_be_what_was_told():
    backend = only(take=lambda tag, *_: (tag, 1))
    with pytest.raises(WrongResultError):
        many.tell(Bench(0, Profiler(), NOBODY_WAITS), backend, CALL)


def test_a_call_to_each_has_to_be_answered_by_each(monkeypatch):
    client = SimpleNamespace(call_many=lambda requests: [b""] * (len(requests) - 1))
    monkeypatch.setattr(many, "calls", lambda _: SimpleNamespace(client=lambda _: client))
    with pytest.raises(WrongResultError):
        many.tell_each(Bench(0, Profiler(), NOBODY_WAITS), None, CALL)


@pytest.mark.parametrize("answer", [b"r" * 9, b"r" * 7 + b"x", b""])
def test_who_calls_refuses_another_answer(answer, monkeypatch):
    client = SimpleNamespace(call=lambda _: answer)
    monkeypatch.setattr(calls, "calls", lambda _: SimpleNamespace(client=lambda _: client))
    with pytest.raises(WrongResultError, match="the answer should be 8 bytes"):
        calls.ask(Bench(0, Profiler(), NOBODY_WAITS), SERVERLESS, calls.Plan(8, 8, 1))


@pytest.mark.parametrize("wrong", [lambda asked: asked[1:], lambda asked: [*asked[1:], b"0"]])
def test_undirected_requests_have_to_be_answered_each_by_its_own(wrong):
    way = SimpleNamespace(client=lambda _: SimpleNamespace(call_many=wrong))
    with pytest.raises(WrongResultError):
        many.hand_out(Bench(0, Profiler(), NOBODY_WAITS), way, CALL, 1, many.UNDIRECTED)


def test_a_native_program_has_to_make_all_calls_that_were_asked_for():
    client = SimpleNamespace(exchange=lambda *_: [1], stop=lambda: None)
    peer = SimpleNamespace(client=lambda _: client)
    with pytest.raises(WrongResultError, match="2 calls were asked for, 1 were made"):
        native.ask(Bench(0, Profiler(), NOBODY_WAITS), peer, calls.Plan(8, 8, 2))


def test_a_search_that_finds_another_tuple_is_refused():
    plan = visits.Plan("everywhere", "round robin", 1)
    lie = ("take", "border", 1)
    targets = [(visits.search, plan)]
    found = outcome(lie, visits.SCHEMA, skeleton.names(visits.SPACES), targets)
    assert isinstance(found, WrongResultError)
    assert "searched for border 0" in str(found)
    assert outcome(HONEST, visits.SCHEMA, skeleton.names(visits.SPACES), targets) is None
