"""Entries: tuples with named fields, as instances of classes (M7)."""

import pickle
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, InitVar, dataclass, field, make_dataclass
from decimal import Decimal
from itertools import product
from typing import NamedTuple
from uuid import UUID

import attrs
import msgspec
import pytest

import tupelo as ts
from tupelo import F, like
from tupelo._native import put_text
from tupelo.entries import describe

SCRIPT = "from tupelo.command_line import main; main()"


@dataclass
class Job:
    id: int
    status: str = "ready"
    priority: int = 0


@dataclass
class Render(Job):
    frame: int = 1


@dataclass
class Wanted:
    id: int
    wanted_at: object


class Point(NamedTuple):
    x: float
    y: float = 0.5


@attrs.define
class Note:
    text: str
    _tags: list = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Fixed:
    id: int


class Event(msgspec.Struct, kw_only=True):
    name: str
    data: dict = {}


@dataclass(frozen=True)
class Squared:
    root: int
    square: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "square", self.root * self.root)


ENTRIES = [
    Job(7, "new", 2),
    Render(8, frame=3),
    Point(1.5),
    Note("a", ["x"]),
    Fixed(id=3),
    Event(name="start", data={"a": [1, 2]}),
    Squared(9),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_comes_back_as_an_equal_instance_of_its_class(space, entry):
    space.put(entry)
    copies = [space.read(type(entry)), *space.read_all(type(entry))]
    copies += space.scan(type(entry))
    copies.append(space.take(type(entry)))
    assert copies == [entry] * 4
    assert all(type(copy) is type(entry) for copy in copies)
    assert space.try_take(type(entry)) is None


def test_a_template_names_any_of_the_fields_in_any_order_m7(space):
    space.put_all([Job(1), Job(2, "new"), Job(3, "new", 5), ("plain", 1)])
    assert space.take(Job, priority=F > 3, status="new") == Job(3, "new", 5)
    assert space.try_read(Job, status="old") is None
    assert space.count(Job) == 2
    assert space.count(Job, id=int, status=str) == 2
    assert space.take(Job, id=2, timeout=1) == Job(2, "new")
    assert space.read_all(Job, status=..., limit=5) == [Job(1)]
    assert space.count("plain", int) == 1


def test_a_template_may_be_an_entry_which_matches_what_is_like_it(space):
    space.put(Job(1))
    assert space.try_take(Job(2)) is None
    assert space.take(Job(1)) == Job(1)


def test_one_entry_is_an_entry_and_anything_else_is_a_tuple(space):
    space.put("x", Job(1))
    space.put(Job(2))
    assert space.count(Job) == 1
    assert space.take("x", ...) == ("x", Job(1))
    space.put("x", [Job(3), {"a": Point(1.0, 2.0)}])
    assert space.take("x", list) == ("x", [Job(3), {"a": Point(1.0, 2.0)}])
    space.put("x", Job(4))
    assert space.try_take("x", Job(5)) is None
    assert space.take("x", Job(4)) == ("x", Job(4))


def test_like_makes_a_template_of_entries(space):
    new = like(Job, status="new")
    either = new | like("stop")
    space.put_all([Job(1), Job(2, "new"), ("stop",)])
    assert space.take(new) == Job(2, "new")
    assert space.take(either) == ("stop",)
    assert new == like(Job, status="new") == pickle.loads(pickle.dumps(new))
    assert str(new) == 'Job{status: "new"}'
    assert space.take(ts.parse("Job{id: 1}")) == Job(1)


def test_to_and_unless_accept_an_entry_or_a_like_as_a_1_tuple(space):
    assert space.put_if_absent(Job(1), unless=(like(Job),))
    assert not space.put_if_absent(Job(1))
    assert not space.put_if_absent(Job(2), unless=like(Job, id=1))
    assert not space.put_if_absent("x", unless=(Job(1),))
    assert space.swap(Job, id=1, to=(Job(3),)) == Job(1)
    assert space.try_swap(Job, to=Job(4)) == Job(3)
    assert space.take_many(Job, n=1) == [Job(4)]


def test_every_verb_takes_entries(space, new_url):
    with ts.connect(new_url("mem")) as other:
        space.put_all(Job(n) for n in range(4))
        assert space.copy_to(other, Job, id=0) == 1
        assert space.move_to(other, Job, id=1) == 1
        assert other.take_all(Job) == [Job(0), Job(1)]
        space.finish(Job, id=F >= 2)
        assert [job.id for job in space.consume(Job, id=F >= 2)] == [2, 3]
        space.wait_none(Job, id=3, timeout=1)
        assert space.explain(Job, id=9).differences == [(0, "0", "9")]


def test_a_blocked_take_gets_the_first_entry_that_comes(space):
    taken = []
    taker = threading.Thread(target=lambda: taken.append(space.take(Job, id=2, timeout=60)))
    taker.start()
    space.put(Job(1))
    space.put(Render(2))
    taker.join()
    assert taken == [Render(2)]
    assert space.count(Job) == 1


def test_an_index_is_learned_over_a_field_by_name(space):
    space.put_all(Job(n, str(n % 7)) for n in range(500))
    for n in range(400):
        assert space.read(Job, id=n).id == n
    (shape,) = space.stat()["shapes"]
    assert (shape["entry"], shape["fields"]) == ("Job", ("id", "status", "priority"))
    assert shape["indexes"] == [[0]]


def test_entries_have_no_field_numbers_to_be_ordered_by(space):
    space.put_all([Job(1, priority=9), Job(2, priority=5), ("n", 1), ("n", 2)])
    templates = [Job, Job(1, priority=9), like("n", int) | like(Job, id=int)]
    with space.transaction() as t:
        verbs = [space.take, space.read, space.try_take, space.try_read, space.claim]
        verbs += [space.try_claim, t.take, t.read, t.try_take, t.try_read]
        for verb, template in product(verbs, templates):
            with pytest.raises(ts.TemplateError, match="entries have no field numbers") as caught:
                verb(template, order=F.max(0))
            assert 'take(Job, order=F.max("priority"))' in caught.value.hint
    assert space.count(Job) == 2
    assert space.take("n", int, order=F.max(1)) == ("n", 2)
    assert space.take(Job, order="lifo") == Job(2, priority=5)


def test_entries_are_ordered_by_a_field_that_each_class_has_by_name_t2_m7(space):
    space.put_all([Job(1, priority=3), Render(2, priority=9), Job(3, priority=5), Render(4)])
    assert space.take(Job, order=F.max("priority")) == Render(2, priority=9)
    assert space.read(Job, order=F.min("priority")) == Render(4)
    with space.transaction() as t:
        t.put(Job(5, priority=7))
        assert t.take(Job, order=F.max("priority")) == Job(5, priority=7)
        assert t.take(Job, order=F.max("priority")) == Job(3, priority=5)
    with space.claim(Job, order=F.max("id")) as job:
        assert job == Render(4)


def test_an_order_by_a_name_that_no_match_has_is_refused_t2(space):
    with pytest.raises(ts.TemplateError, match='"prority", which Job has not') as caught:
        space.take(Job, order=F.max("prority"), timeout=0)
    assert "did you mean" in caught.value.hint
    for template in [("n", int), (like("n", int) | like(Job),)]:
        with pytest.raises(ts.TemplateError, match="only fields of entries have names"):
            space.take(*template, order=F.min("priority"), timeout=0)


def put_elsewhere(url, entry):
    """Put an entry, given as text, in a process that knows no class."""
    words = ["put", url, entry]
    subprocess.run([sys.executable, "-c", SCRIPT, *words], check=True, timeout=60)


def test_an_entry_of_an_unknown_class_stays_and_says_what_to_import(shm, shm_url):
    put_elsewhere(shm_url, "Nowhere(Job){id: 1}")
    with pytest.raises(ts.SchemaMismatch, match="an entry Nowhere") as caught:
        shm.take(Job)
    assert "import Nowhere" in caught.value.hint
    assert shm.count(Job) == 1  # V3
    nowhere = make_dataclass("Nowhere", [("id", int)])
    assert shm.take(nowhere) == nowhere(1)


def test_a_field_of_an_entry_that_python_can_not_represent_is_named_v3(space):
    wanted = 'Wanted{id: 7, wanted_at: timestamp("2031-05-04T16:20:00.123456789Z")}'
    put_text(space, wanted)
    for verb in (space.take, space.try_take, space.read_all):
        with pytest.raises(ts.NotEncodable, match="field wanted_at is the timestamp"):
            verb(Wanted)
    assert space.count(Wanted) == 1
    put_text(space, f'"x", {wanted}')
    put_text(space, f'"x", list({wanted})')
    for _ in range(2):
        with pytest.raises(ts.NotEncodable, match="field wanted_at of the entry Wanted is the"):
            space.take("x", ...)
    assert space.count("x", ...) == 2


def test_schema_registers_classes_before_their_first_use(new_url):
    url = new_url("mem")
    with ts.connect(url) as space:
        space.put(make_dataclass("Eager", [("id", int)])(1))
        eager = make_dataclass("Eager", [("id", int), ("owner", str)])
        with pytest.raises(ts.SchemaMismatch):
            ts.connect(url, schema=[eager])
        with pytest.raises(TypeError, match="no class of entries"):
            ts.connect(url, schema=[int])
        with ts.connect(url, schema=[Job, Point]) as again:
            again.put(Job(1))


def test_a_class_may_go_by_another_name(space):
    @dataclass
    class Local:
        __tupelo_name__ = "org.example.Job"
        id: int

    space.put(Local(1))
    assert str(like(Local)) == "org.example.Job{}"
    assert space.take(Local) == Local(1)


def test_what_a_class_of_entries_can_not_be_says_so(space):
    with pytest.raises(TypeError, match='no keyword argument "id"'):
        space.take(Job(1), id=2)
    with pytest.raises(ts.TemplateError, match="stands alone"):
        like("job", id=3)
    with pytest.raises(ts.NotEncodable, match="field status is"):
        space.put(Job(1, status=...))
    with pytest.raises(ts.TemplateError, match="field status is F without"):
        space.take(Job, status=F)
    wide = make_dataclass("Wide", [(f"f{n}", int) for n in range(65)])
    with pytest.raises(TypeError, match="64 fields"):
        space.take(wide)


def test_frozen_entries_are_made_frozen(space):
    space.put(Squared(3))
    with pytest.raises(FrozenInstanceError):
        space.take(Squared).root = 4


class Refusing:
    """A field that takes what is positive."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return 0 if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(value)
        setattr(instance, self.name, value)


@dataclass
class ByDescriptor:
    value: int = Refusing()


@dataclass
class BySetting:
    value: int

    def __setattr__(self, name, value):
        if value < 0:
            raise ValueError(value)
        super().__setattr__(name, value)


@dataclass
class ByFactory:
    value: int
    made: int = field(init=False, default_factory=lambda: int("x"))


class ByMeta(type):
    def __call__(cls, value):
        if value < 0:
            raise ValueError(value)
        return super().__call__(value)


@dataclass
class Called(metaclass=ByMeta):
    value: int


AT_A_PROMPT = """
@dataclass
class ByHand:
    value: int

    def __init__(self, value):
        if value < 0:
            raise ValueError(value)
        self.value = value
"""
# Its code has the file name of what `dataclass` generates.
exec(AT_A_PROMPT, globals())  # noqa: S102


@pytest.mark.parametrize("cls", [ByDescriptor, BySetting, ByFactory, Called, ByHand])  # noqa: F821
def test_whatever_code_refuses_an_entry_it_stays_in_the_space_v3(space, cls):
    negative = object.__new__(cls)
    vars(negative).update(value=-1, _value=-1, made=1)
    space.put(negative)
    for verb in (space.take, space.try_take, space.take_all):
        with pytest.raises(ValueError, match=r"-1|'x'"):
            verb(cls)
        assert space.count(cls) == 1


def test_of_two_classes_of_one_name_either_may_refuse_without_a_loss_v3(space):
    @dataclass
    class Twice:
        value: int

        def __post_init__(self):
            if self.value < 0:
                raise ValueError(self.value)

    refusing = Twice
    accepting = make_dataclass("Twice", [("value", int)])
    larger = make_dataclass("Twice", [("value", int), ("more", int)])
    space.try_read(refusing)
    space.put(accepting(-1))
    with pytest.raises(ValueError, match="-1"):
        space.take(refusing)
    assert space.take(accepting) == accepting(-1)
    assert space.count(accepting) == 0
    space.try_read(larger)
    space.put(accepting(2))
    with pytest.raises(ts.SchemaMismatch):
        space.take(larger)
    assert space.take(accepting) == accepting(2)


def test_of_classes_whose_entries_no_code_in_python_makes_it_is_known_that_they_refuse_nothing():
    """Takes of their entries need not be prepared to put one back, which costs time."""
    assert {cls for cls in (Job, Render, Point, Note, Fixed, Event) if describe(cls)[4]} == {
        Point,
        Event,
    }


@pytest.mark.parametrize("entry", [Job(1), Decimal(1), UUID(int=1)], ids=type)
def test_what_is_interrupted_while_it_is_made_stays_in_the_space_v3(space, entry):
    """Code in Python makes it, in which anything can come in between: here the stack ends."""

    def at_the_end_of_the_stack():
        try:
            return at_the_end_of_the_stack()
        except RecursionError:
            return space.try_take(type(entry))

    space.put(entry)
    try:
        taken = at_the_end_of_the_stack()
    except RecursionError:
        taken = None
    assert space.count(type(entry)) == (taken is None)
    if taken is None:
        assert space.try_take(type(entry)) in [entry, (entry,)]


@dataclass
class Scaled:
    x: int
    scale: InitVar[int] = 1
    y: int = 0

    def __post_init__(self, scale):
        self.x *= scale


@dataclass
class Turned:
    x: int
    y: int

    def __init__(self, y, x):
        self.x, self.y = x, y


@dataclass(init=False)
class Grown(Job):
    more: int


@dataclass
class Wanting:
    x: int
    seed: InitVar[int]
    y: int = 0

    def __post_init__(self, seed):
        pass


def test_a_constructor_with_other_arguments_or_another_order_gets_each_field_as_its_own(space):
    for entry in (Scaled(5, y=7), Turned(x=1, y=2)):
        space.put(entry)
        assert space.take(type(entry)) == entry


@dataclass(init=False)
class AnyKeyword:
    x: int

    def __init__(self, **given):
        self.x = given["x"]


def test_an_entry_that_can_not_be_made_again_is_refused_when_it_is_put_v3(space):
    grown = Grown(1)
    grown.more = 3
    for entry, why in (
        (grown, "an entry Grown, which can not be made again: its constructor takes no more="),
        (Wanting(1, 2, 3), "its constructor wants seed, which is no field"),
    ):
        for put in (
            space.put,
            lambda entry: space.put_all([entry]),
            lambda entry: space.put("within", [entry]),
            lambda entry: space.swap("x", to=entry, timeout=0),
        ):
            space.put("x")
            with pytest.raises(ts.NotEncodable, match=why) as caught:
                put(entry)
            assert "put the parts as a plain tuple" in caught.value.hint
            assert space.take_all(ts.REST) == [("x",)]
    for entry in (AnyKeyword(x=3), Scaled(5, y=7)):
        space.put(entry)
        assert space.take(type(entry)).x == entry.x


def test_a_tuple_that_can_not_be_made_says_how_it_is_removed(space):
    """Or it would be the first that every take of its class meets."""
    bad = object.__new__(Called)
    bad.value = -1
    space.put(bad)
    space.put(Called(2))
    with pytest.raises(ValueError, match="-1") as caught:
        space.take(Called)
    (note,) = caught.value.__notes__
    remove = "space.discard(ts.parse('Called{value: -1}'), limit=1)"
    assert note == f"the tuple stays where it is; to remove it unread: {remove}"
    assert eval(remove, {"space": space, "ts": ts}) == 1  # noqa: S307 - as it says
    assert space.take(Called).value == 2


def test_a_tuple_with_an_object_of_no_class_here_says_how_it_is_removed(space):
    put_text(space, '"job", 7, opaque("pickle", "gone.Gone", b"cgone\\nGone\\n.")')
    with pytest.raises(ts.NotEncodable) as caught:
        space.take("job", int, ...)
    (note,) = caught.value.__notes__
    assert note.endswith("""space.discard(ts.parse('("job", 7, :opaque)'), limit=1)""")
    with space.transaction() as t:
        assert t.discard("job", int, F.opaque) == 1
    assert space.discard("job", 7, F.opaque) == 0
