"""Every operation runs on a space and on a list; every answer must agree."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import tupelo as ts
from tupelo import REST, F

# Few of each, so that templates meet their match; those that break naive code by name.
VALUES = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        2**63,
        0.0,
        -0.0,
        1.0,
        float("nan"),
        "",
        "a",
        b"",
        b"a",
        (),
        (1,),
        [1],
        [],
    ]
)
TUPLES = st.lists(VALUES, max_size=3).map(tuple)
WEAKEN = st.lists(st.sampled_from(["actual", "formal", "any", "unequal"]), min_size=3, max_size=3)


def key(value):
    """What decides whether two values match: kind and content, all NaN alike (M2)."""
    if isinstance(value, float):
        return "float", "nan" if value != value else value + 0.0  # noqa: PLR0124
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(key(item) for item in value)
    return type(value).__name__, value


class Wanted:
    """A template, and the predicate that it should mean."""

    def __init__(self, like, weaken):
        self.patterns = []
        self.tests = []
        for value, how in zip(like, weaken, strict=False):
            pattern, test = getattr(self, f"_{how}")(value)
            self.patterns.append(pattern)
            self.tests.append(test)
        if [type(pattern) for pattern in self.patterns] == [tuple]:
            self.patterns = [F.in_(self.patterns)]  # a sole tuple is refused

    @staticmethod
    def _actual(value):
        return value, lambda field: key(field) == key(value)

    @staticmethod
    def _formal(value):
        return type(value), lambda field: type(field) is type(value)

    @staticmethod
    def _any(_value):
        return ..., lambda _field: True

    @staticmethod
    def _unequal(value):
        return value != F, lambda field: key(field) != key(value)

    def matches(self, fields):
        return len(fields) == len(self.tests) and all(
            test(field) for test, field in zip(self.tests, fields, strict=True)
        )


def bits(fields):
    return repr(fields)


def shape(fields):
    return tuple(type(field).__name__ for field in fields)


class AgainstAList(RuleBasedStateMachine):
    """The space, and the list of its tuples in the order in which they were put."""

    scheme = "mem"

    @initialize()
    def begin(self):
        self.space = ts.connect(f"{self.scheme}://test-model", fresh=True, size="16M")
        self.model = []
        # From the first such call on, ages compare across shapes.
        self.space.put_all([(1,), ("one",)])
        assert self.space.try_take(int | str) is not None
        assert self.space.try_take(int | str) is not None

    def teardown(self):
        self.space.close()
        ts.remove(self.space.url)

    def matches(self, wanted):
        return [fields for fields in self.model if wanted.matches(fields)]

    def firsts(self, wanted):
        """The oldest match of all shapes, if there is one (T2)."""
        return self.matches(wanted)[:1]

    def remove(self, fields):
        place = next(i for i, stored in enumerate(self.model) if bits(stored) == bits(fields))
        del self.model[place]

    @rule(fields=TUPLES)
    def put(self, fields):
        self.space.put_all([fields])
        self.model.append(fields)

    @rule(tuples=st.lists(TUPLES, max_size=5))
    def put_all(self, tuples):
        assert self.space.put_all(iter(tuples)) == len(tuples)  # O5
        self.model += tuples

    @rule(like=TUPLES, weaken=WEAKEN, waits=st.booleans())
    def take(self, like, weaken, waits):
        wanted = Wanted(like, weaken)
        self._single(wanted, self.space.take if waits else self.space.try_take, waits)

    @rule(like=TUPLES, weaken=WEAKEN, waits=st.booleans())
    def read(self, like, weaken, waits):
        wanted = Wanted(like, weaken)
        before = list(self.model)
        self._single(wanted, self.space.read if waits else self.space.try_read, waits)
        self.model = before

    def _single(self, wanted, verb, waits):
        expected = self.firsts(wanted)
        if waits and not expected:
            with pytest.raises(ts.Timeout):
                verb(*wanted.patterns, timeout=0)
            return
        found = verb(*wanted.patterns)
        if not expected:
            assert found is None  # O4
            return
        assert bits(found) in map(bits, expected)  # T1, T2, V3
        self.remove(found)

    @rule(like=TUPLES, weaken=WEAKEN, limit=st.none() | st.integers(0, 4), removes=st.booleans())
    def many(self, like, weaken, limit, removes):
        wanted = Wanted(like, weaken)
        verb = self.space.take_all if removes else self.space.read_all
        found = verb(*wanted.patterns, limit=limit)
        expected = self.matches(wanted)
        assert len(found) == (len(expected) if limit is None else min(limit, len(expected)))
        for kinds in {shape(fields) for fields in found}:
            of_shape = [bits(fields) for fields in found if shape(fields) == kinds]
            oldest = [bits(fields) for fields in expected if shape(fields) == kinds]
            assert of_shape == oldest[: len(of_shape)]  # T2
        if removes:
            for fields in found:
                self.remove(fields)

    @rule(like=TUPLES, weaken=WEAKEN, at_least=st.integers(0, 3), more=st.integers(0, 3))
    def take_many(self, like, weaken, at_least, more):
        wanted = Wanted(like, weaken)
        there = len(self.matches(wanted))
        options = {"n": at_least + more, "at_least": at_least, "timeout": 0}
        if there < at_least:
            with pytest.raises(ts.Timeout, match=f"{there} of {at_least} tuples"):
                self.space.take_many(*wanted.patterns, **options)
            return
        found = self.space.take_many(*wanted.patterns, **options)
        assert len(found) == min(there, at_least + more)
        for fields in found:
            self.remove(fields)

    @rule(like=TUPLES, weaken=WEAKEN, to=TUPLES)
    def swap(self, like, weaken, to):
        wanted = Wanted(like, weaken)
        expected = self.firsts(wanted)
        old = self.space.try_swap(*wanted.patterns, to=to)
        if not expected:
            assert old is None
            return
        assert bits(old) in map(bits, expected)  # O8
        self.remove(old)
        self.model.append(to)

    @rule(fields=TUPLES, like=TUPLES, weaken=WEAKEN)
    def put_if_absent(self, fields, like, weaken):
        if [type(field) for field in fields] == [tuple]:
            fields = (*fields, 1)
        wanted = Wanted(like, weaken)
        absent = not self.matches(wanted)
        assert self.space.put_if_absent(*fields, unless=tuple(wanted.patterns)) is absent  # O8
        if absent:
            self.model.append(fields)

    @rule(like=TUPLES, weaken=WEAKEN)
    def look(self, like, weaken):
        wanted = Wanted(like, weaken)
        expected = self.matches(wanted)
        assert self.space.count(*wanted.patterns) == len(expected)  # O6
        scanned = self.space.scan(*wanted.patterns)
        assert Counter(map(bits, scanned)) == Counter(map(bits, expected))
        if expected:
            with pytest.raises(ts.Timeout):
                self.space.wait_none(*wanted.patterns, timeout=0)
        else:
            self.space.wait_none(*wanted.patterns, timeout=0)  # O9

    @invariant()
    def nothing_lost_nothing_invented(self):
        if not hasattr(self, "space"):
            return
        for arity in range(4):
            in_model = sum(len(stored) == arity for stored in self.model)
            assert self.space.count(*(...,) * arity) == in_model
        assert self.space.count(REST) == len(self.model)


class AgainstAListInSharedMemory(AgainstAList):
    scheme = "shm"


@pytest.mark.parametrize("machine", [AgainstAList, AgainstAListInSharedMemory])
def test_a_space_answers_as_a_list_would(machine):
    run_state_machine_as_test(
        machine, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )
