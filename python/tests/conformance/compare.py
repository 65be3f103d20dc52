"""Comparing answers: to the bit, and several of them in order among those of one shape (V3, T2)."""

import dataclasses
import struct
from decimal import Decimal
from typing import NamedTuple

from conformance.entries import ABSENT, bases_of, is_entry, name_of


class Bits(NamedTuple):
    """A value such that `==` compares it to the bit."""

    kind: str
    content: object


def bits(value):
    """Make a value comparable to the bit: kinds, the sign of zero, the exponent of a decimal.

    Of an entry these are the name of its class and the fields that it has. Its bases are those of
    whichever class goes by the name here, so they say nothing about what was stored.
    """
    if is_entry(value):
        fields = tuple((name, bits(field)) for name, field in fields_of(value))
        return Bits("entry", (name_of(type(value)), fields))
    return Bits(type(value).__name__, content_of(value))


def content_of(value):
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, Decimal):
        return value.as_tuple()
    if isinstance(value, (list, tuple)):
        return tuple(bits(item) for item in value)
    if isinstance(value, dict):
        return frozenset((bits(key), bits(item)) for key, item in value.items())
    if type(value).__name__ == "ndarray":
        return value.dtype.str, value.shape, value.tobytes()
    return value


def compare_in_order(answer, expected):
    """Compare tuples in order among those of one shape: between shapes there is no order (T2)."""
    shapes = shapes_of(expected)
    assert grouped(answer, shapes, bits) == grouped(expected, shapes, bits)


def compare_events(answer, expected):
    """Compare pairs of a kind of event and a tuple, in order among the tuples of one shape."""
    shapes = shapes_of(fields for _, fields in expected)

    def shown(event):
        kind, fields = event
        return kind, bits(fields)

    assert grouped(answer, shapes, shown) == grouped(expected, shapes, shown)


def shapes_of(expected):
    """Return the shape of each tuple that may be in the answer.

    Only a tuple of the case says what the bases of an entry are, which are part of its shape.
    """
    return {bits(fields): shape(fields) for fields in expected}


def grouped(items, shapes, shown):
    """Group what is shown of some tuples by their shapes; what nobody expects stands apart."""
    groups = {}
    for item in items:
        one = shown(item)
        fields = one if isinstance(one, Bits) else one[-1]
        groups.setdefault(shapes.get(fields), []).append(one)
    return groups


def shape(fields):
    if is_entry(fields):
        kinds = tuple((name, type(field).__name__) for name, field in fields_of(fields))
        return name_of(type(fields)), bases_of(type(fields)), kinds
    return tuple(type(field).__name__ for field in fields)


def fields_of(entry):
    """Return the names and the values of the fields that an entry has, in one order."""
    fields = ((one.name, getattr(entry, one.name)) for one in dataclasses.fields(entry))
    return sorted((name, value) for name, value in fields if value is not ABSENT)
