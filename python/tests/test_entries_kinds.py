"""Entries of each kind of class: dataclass, NamedTuple, attrs and msgspec (M7)."""

from dataclasses import dataclass, field, make_dataclass
from itertools import count
from types import new_class
from typing import Any, NamedTuple

import attrs
import msgspec
import pytest

import tupelo as ts
from tupelo import F, like
from tupelo.batteries import gather

NUMBERS = count()

REQUIRED = object()
"""What a field without a default has in its place."""


def described(fields, field):
    """Yield the fields as `make_dataclass` and `defstruct` want them; a list is made anew."""
    for name, default in fields.items():
        if default is REQUIRED:
            yield (name, Any)
        elif isinstance(default, list):
            yield (name, Any, field(default_factory=default.copy))
        else:
            yield (name, Any, default)


def dataclass_of(name, bases, fields):
    return make_dataclass(name, described(fields, field), bases=bases)


def named_tuple_of(name, bases, fields):
    """Return a NamedTuple, or a class derived from one: that has the fields of its base alone."""
    if bases:
        assert not fields
        return new_class(name, bases)
    defaults = {name: default for name, default in fields.items() if default is not REQUIRED}
    body = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, Any), **defaults}
    return new_class(name, (NamedTuple,), exec_body=lambda names: names.update(body))


def attrs_of(name, bases, fields):
    def described(default):
        if isinstance(default, list):
            return attrs.field(factory=default.copy)
        return attrs.field(default=attrs.NOTHING if default is REQUIRED else default)

    described_fields = {name: described(default) for name, default in fields.items()}
    return attrs.make_class(name, described_fields, bases=bases or (object,))


def struct_of(name, bases, fields):
    return msgspec.defstruct(name, described(fields, msgspec.field), bases=bases or None)


KINDS = {
    "dataclass": dataclass_of,
    "NamedTuple": named_tuple_of,
    "attrs": attrs_of,
    "msgspec": struct_of,
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make(kind):
    """Return a function that makes classes of a kind, whose names no other test has."""
    number = next(NUMBERS)

    def make(name, *bases, **fields):
        return KINDS[kind](f"{name}_{number}", bases, fields)

    return make


def test_fields_come_in_any_order_and_those_that_are_not_given_have_their_default_m7(space, make):
    job = make("Job", id=REQUIRED, status="ready", priority=0)
    space.put_all([job(1), job(2, "new"), job(3, "new", 5), ("plain", 1)])
    assert space.take(job, priority=F > 3, status="new") == job(3, "new", 5)
    assert space.try_take(job, status="old") is None
    assert space.read_all(job, status="ready") == [job(1)]
    assert space.take(like(job, id=2)) == job(id=2, status="new", priority=0)
    assert space.take(job(1)) == job(1)
    assert space.count(job) == 0


def test_a_template_of_a_base_class_matches_entries_of_derived_classes_m7(space, make, kind):
    # What is derived from a NamedTuple is a tuple as long as that: it has no fields of its own.
    more = {} if kind == "NamedTuple" else {"frame": 1}
    job = make("Job", id=REQUIRED, status="ready")
    render = make("Render", job, **more)
    still = make("Still", render)
    entries = [render(1), job(2), still(3), render(4, "new", *more.values())]
    space.put_all(entries)
    assert [space.count(cls) for cls in (job, render, still)] == [4, 3, 1]
    assert space.read_all(render, status="new") == [entries[3]]
    taken = [space.take(job, id=n) for n in (1, 2, 3, 4)]
    assert taken == entries
    assert [type(entry) for entry in taken] == [render, job, still, render]
    assert space.count(job) == 0


def test_a_derived_class_that_was_not_used_yet_is_found(space, make):
    job = make("Job", id=REQUIRED)
    space.try_read(job)
    late = make("Late", job)
    space.put(late(5))
    taken = space.take(job, timeout=0)
    assert (type(taken), taken) == (late, late(5))


def test_none_is_a_value_of_a_field_and_no_wildcard_m2(space, make):
    job = make("Job", id=REQUIRED, owner=None)
    space.put_all([job(1), job(2, "me"), job(None, "you")])
    assert space.count(job, owner=None) == 1
    assert space.take(job, owner=None) == job(1)
    assert space.try_take(job(2)) is None
    assert space.take(job, id=None) == job(None, "you")
    assert space.take(job, owner=...) == job(2, "me")


def test_entries_are_fields_of_others_alone_in_lists_and_in_maps(space, make):
    point = make("Point", x=REQUIRED, y=None)
    path = make("Path", start=REQUIRED, more=REQUIRED)
    made = path(point(1.5), [point(2, 3), {"end": point(4, path(point(5), None))}])
    other = path(None, None)
    space.put_all([made, other])
    assert space.try_take(path, start=point(1.5, 0)) is None
    assert space.read(path, start=point(1.5)) == made
    assert space.count(point) == 0
    assert space.take(made) == made
    assert space.take(path, start=None) == other


def test_a_misspelt_field_is_an_error_that_names_the_right_one(space, make):
    job = make("Job", id=REQUIRED, status="ready", priority=0)
    space.put(job(1))
    told = f'TUP-009: {job.__name__} has no field "stauts"'
    for verb in (space.take, space.try_read, space.count, space.read_all, like):
        with pytest.raises(ts.UnknownField, match=told) as caught:
            verb(job, stauts="new")
        assert 'did you mean "status"?' in str(caught.value)
        assert caught.value.hint == "fields: id, status, priority"
    with pytest.raises(TypeError, match="no keyword argument"):
        space.take("job", int, stauts=1)
    assert space.count(job) == 1


def test_a_class_with_another_field_is_a_mismatch_unless_it_has_a_default_m7(space, make):
    old = make("Versioned", id=REQUIRED)
    name = old.__name__
    space.put(old(1))
    strict = make("Versioned", id=REQUIRED, owner=REQUIRED)
    for use in (lambda: space.take(strict), lambda: space.put(strict(2, "me"))):
        with pytest.raises(ts.SchemaMismatch, match="TUP-010") as caught:
            use()
        assert f"{name}(id, owner) here; the space holds 1 {name}(id)" in str(caught.value)
        assert "give the new field a default" in caught.value.hint
    lenient = make("Versioned", id=REQUIRED, owner="?")
    space.put(lenient(2, "me"))
    assert space.take(lenient, id=1) == lenient(1, "?")
    assert space.take(lenient) == lenient(2, "me")


def test_an_older_class_goes_on_beside_a_newer_one_and_carries_what_it_does_not_know_m7(
    space, make
):
    old, new = make("Versioned", id=REQUIRED), make("Versioned", id=REQUIRED, owner="?")
    space.put_all([new(1, "ada"), new(2, "bob"), new(3, "eve")])
    space.put(old(4))  # a program that has begun since
    assert [one.id for one in space.read_all(old)] == [1, 2, 3, 4]
    assert space.take(old, id=2) == old(2)
    for _ in range(2):
        space.put(ts.replace(space.take(old, id=1), id=1))
        space.put(space.take(old, id=3))
        space.put("within", [ts.replace(space.take(old, id=4), id=4)])
        space.put(space.take("within", list)[1][0])
    # Of a NamedTuple and a Struct there is no place where an instance could carry anything.
    carries = hasattr(old(0), "__dict__")
    owners = {one.id: one.owner for one in space.read_all(new)}
    assert owners == ({1: "ada", 3: "eve", 4: "?"} if carries else {1: "?", 3: "?", 4: "?"})


def test_a_copy_has_other_values_and_no_others_than_the_fields_have(make):
    job = make("Job", id=REQUIRED, status="ready")
    assert ts.replace(job(1), status="done") == job(1, "done")
    with pytest.raises(TypeError):
        ts.replace(job(1), stauts="done")
    with pytest.raises(TypeError, match="entry has the type dict: give an instance of"):
        ts.replace({}, status=1)


# Not of a NamedTuple, all of which have one and the same object as their default.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "NamedTuple"])
def test_a_default_that_is_made_anew_each_time_is_so_for_what_had_no_such_field(space, make):
    old = make("Versioned", id=REQUIRED)
    space.put_all([old(1), old(2)])
    new = make("Versioned", id=REQUIRED, tags=[])
    one, two = space.take_all(new)
    assert [one, two] == [new(1, []), new(2, [])]
    assert one.tags is not two.tags


@dataclass
class Positive:
    value: int

    def __post_init__(self):
        if self.value < 0:
            raise ValueError(self.value)


@attrs.define(on_setattr=attrs.setters.NO_OP)
class Validated:
    value: int = attrs.field(validator=attrs.validators.ge(0))


class Examined(msgspec.Struct):
    value: int

    def __post_init__(self):
        if self.value < 0:
            raise ValueError(self.value)


# A NamedTuple has no code of its own that could refuse.
@pytest.mark.parametrize("cls", [Positive, Validated, Examined])
def test_an_entry_that_its_class_refuses_stays_in_the_space_v3(space, cls):
    negative = cls(1)
    negative.value = -1
    space.put(negative)
    for verb in (space.take, space.try_take, space.take_all, space.read):
        with pytest.raises(ValueError, match="-1"):
            verb(cls)
        assert space.count(cls) == 1


def test_a_field_named_like_a_keyword_is_refused_but_by_like(space, make):
    timed = make("Timed", timeout=REQUIRED)
    space.put(timed(3.0))
    with pytest.raises(TypeError, match=rf"like\({timed.__name__}, timeout=\.\.\.\)"):
        space.take(timed, timeout=3.0)
    assert space.take(like(timed, timeout=3.0)) == timed(3.0)
    # Also with what is no value of that keyword.
    ranked = make("Ranked", order=REQUIRED, limit=REQUIRED)
    refusal = rf"give like\({ranked.__name__}, order=\.\.\.\)"
    space.put(ranked(1, "a"))
    with space.transaction() as t:
        for verb in (space.try_take, space.take, space.read_all, space.claim, t.take, t.try_read):
            with pytest.raises(TypeError, match=refusal):
                verb(ranked, order=1)
        for verb in (space.take_all, t.read_all):
            with pytest.raises(TypeError, match=refusal):
                verb(ranked, limit="a")


def test_of_an_instance_a_keyword_is_the_verbs_also_if_a_field_is_named_like_it(space, make):
    alarm = make("Alarm", timeout=REQUIRED)
    space.put(alarm(2.5))
    assert space.try_take(alarm(2.0)) is None
    assert space.take(alarm(2.5), timeout=0) == alarm(2.5)
    limited = make("Limited", limit=REQUIRED, where=REQUIRED)
    space.put_all([limited(1, "a"), limited(1, "a")])
    assert space.count(limited(1, "a"), where="limit == 1") == 2
    assert space.count(like(limited(1, "a"), where="limit == 2")) == 0
    assert space.take_all(limited(1, "a"), limit=1) == [limited(1, "a")]
    with space.transaction() as t:
        assert t.take_all(limited(1, "a"), limit=1) == [limited(1, "a")]


def test_a_field_that_is_named_like_no_keyword_of_a_verb_goes_by_keyword_m7(space, make):
    laid_out = make("LaidOut", schema=REQUIRED)
    space.put_all([laid_out(1), laid_out(2)])
    assert space.take(laid_out, schema=2, timeout=0) == laid_out(2)
    assert ts.search([space], laid_out, schema=1, timeout=0).tuple == laid_out(1)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("timeout", lambda s, cls: s.take(cls, timeout=1)),
        ("where", lambda s, cls: s.try_take(cls, where="true")),
        ("order", lambda s, cls: s.try_claim(cls, order="fifo")),
        ("limit", lambda s, cls: s.take_all(cls, limit=1)),
        ("n", lambda s, cls: s.take_many(cls, n=1)),
        ("at_least", lambda s, cls: s.take_many(cls, n=1, at_least=1)),
        ("idle", lambda s, cls: s.consume(cls, idle=1)),
        ("to", lambda s, cls: s.try_swap(cls, to=(1,))),
        ("unless", lambda s, cls: s.try_take(cls, unless=1)),
        ("lease", lambda s, cls: s.try_take(cls, lease=1)),
        ("after", lambda s, cls: s.try_take(cls, after=1)),
        ("ttl", lambda s, cls: s.try_claim(cls, ttl=1)),
        ("max_attempts", lambda s, cls: s.try_claim(cls, max_attempts=1)),
        ("on", lambda s, cls: s.subscribe(cls, on="put")),
        ("buffer", lambda s, cls: s.subscribe(cls, buffer=1)),
        ("buffer_bytes", lambda s, cls: s.subscribe(cls, buffer_bytes=65536)),
        ("want", lambda s, cls: ts.search([s], cls, want="take", timeout=0)),
        ("want", lambda s, cls: ts.search([s], cls, want=1)),
        ("progress", lambda s, cls: gather(s, cls, n=1, progress="x")),
        ("progress", lambda s, cls: gather(s, cls, n=1, progress=1)),
    ],
)
def test_whatever_keyword_a_field_is_named_like_the_call_is_refused_and_takes_nothing(
    space, make, name, use
):
    named = make("Named", **{name: REQUIRED})
    space.put(named(1))
    with pytest.raises(TypeError, match=rf"like\({named.__name__}, {name}=\.\.\.\)"):
        use(space, named)
    assert space.take(like(named, **{name: 1}), timeout=0) == named(1)
