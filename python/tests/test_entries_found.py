"""Entries whose class no space has met: it is found in the modules of the program (M7)."""

import sys
from dataclasses import dataclass, make_dataclass
from types import ModuleType

import pytest
from test_entries import Job, put_elsewhere

import tupelo as ts


@dataclass
class Unused:
    """No other test uses it, and it is not derived from a class that one uses."""

    id: int


@dataclass
class UnusedToo:
    __tupelo_name__ = "org.example.Unused"
    id: int


def test_a_class_that_a_module_has_is_found_before_its_first_use(shm, shm_url):
    put_elsewhere(shm_url, "Unused(Job){id: 1}")
    assert shm.take(Job) == Unused(1)
    put_elsewhere(shm_url, "org.example.Unused(Job){id: 2}")
    assert shm.take(Job) == UnusedToo(2)


def modules_with(monkeypatch, name, *fields):
    """Have modules that were imported, each with a class of this name; return the classes."""
    classes = []
    for number, names in enumerate(fields):
        module = ModuleType(f"{name.lower()}_{number}")
        module.found = make_dataclass(name, [(field_name, int) for field_name in names])
        monkeypatch.setitem(sys.modules, module.__name__, module)
        classes.append(module.found)
    return classes


def test_of_classes_of_one_name_that_is_found_which_has_the_fields(shm, shm_url, monkeypatch):
    one, _ = modules_with(monkeypatch, "Differing", ["id"], ["id", "more"])
    put_elsewhere(shm_url, "Differing(Job){id: 1}")
    assert shm.take(Job) == one(1)


def test_of_classes_of_one_name_and_the_same_fields_none_is_found(shm, shm_url, monkeypatch):
    _, other = modules_with(monkeypatch, "Ambiguous", ["id"], ["id"])
    put_elsewhere(shm_url, "Ambiguous(Job){id: 1}")
    with pytest.raises(ts.SchemaMismatch, match="this program has 2 of them") as caught:
        shm.take(Job)
    assert "take one, and give it at the start" in caught.value.hint
    assert shm.count(Job) == 1  # V3
    with ts.connect(shm_url, schema=[other]):
        assert shm.take(Job) == other(1)


def test_of_classes_of_one_name_that_were_met_that_with_the_fields_is_taken(
    shm, shm_url, monkeypatch
):
    one, two = modules_with(monkeypatch, "Meeting", ["id"], ["id", "more"])
    for _ in range(2):
        put_elsewhere(shm_url, "Meeting(Job){id: 1}")
        assert shm.take(Job) == one(1)
        put_elsewhere(shm_url, "Meeting(Job){id: 2, more: 3}")
        assert shm.take(Job) == two(2, 3)


def test_a_class_that_was_met_stands_in_where_none_has_the_fields(shm, shm_url, monkeypatch):
    """Unless one with the fields is met later."""
    given = make_dataclass("Evolving", [("id", int), ("more", int, 7)])
    with ts.connect(shm_url, schema=[given]):
        for number in range(2):
            put_elsewhere(shm_url, f"Evolving(Job){{id: {number}}}")
            assert shm.take(Job) == given(number, 7)
        old, _ = modules_with(monkeypatch, "Evolving", ["id"], ["id", "other"])
        put_elsewhere(shm_url, "Evolving(Job){id: 3}")
        assert shm.take(Job) == given(3, 7)  # it was given
        shm.put(old(4))
        assert shm.take(old) == old(4)
        put_elsewhere(shm_url, "Evolving(Job){id: 5}")
        assert shm.take(Job) == old(5)


def test_a_derived_class_that_can_be_no_entry_is_in_nobodys_way(shm, shm_url):
    evolved = make_dataclass("Evolved", [("id", int), ("more", int, 7)])
    wide = make_dataclass("Wide", [(f"f{n}", int, 0) for n in range(70)], bases=(evolved,))
    shm.put(evolved(1))
    shm.take(evolved)
    put_elsewhere(shm_url, "Evolved(Job){id: 2}")
    assert shm.take(Job) == evolved(2, 7)
    assert wide.__mro__[1] is evolved  # it lives until here


def test_a_class_stays_given_whatever_a_search_comes_upon(shm, shm_url, monkeypatch):
    given = make_dataclass("Kept", [("id", int), ("more", int, 7)])
    derived = make_dataclass("Kept", [("extra", int)], bases=(given,), kw_only=True)
    modules_with(monkeypatch, "Elsewhere", ["id"])
    with ts.connect(shm_url, schema=[given]):
        put_elsewhere(shm_url, "Elsewhere(Job){id: 1}")
        shm.take(Job)
        put_elsewhere(shm_url, "Kept(Job){id: 2}")
        assert shm.take(Job) == given(2, 7)
    assert derived.__mro__[1] is given


def test_a_class_that_is_imported_after_another_was_refused_is_found(shm, shm_url, monkeypatch):
    late = make_dataclass("Late", [("id", int)])
    shm.put(late(0))
    shm.take(late)
    put_elsewhere(shm_url, "Late(Job){id: 1, owner: 2}")
    assert shm.take(Job) == late(1)  # which carries the owner
    (right,) = modules_with(monkeypatch, "Late", ["id", "owner"])
    put_elsewhere(shm_url, "Late(Job){id: 1, owner: 2}")
    assert shm.take(Job) == right(1, 2)
