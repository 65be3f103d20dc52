"""The way from Python into Java and back: tuples as entries, entries as tuples, through JPype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.javaspaces.entry_classes import class_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.backends.base import Fields, Schema, Shape


class Bridge:
    """The tuples of one space, in a process whose virtual machine runs."""

    def __init__(self, jpype: Any, schema: Schema, space: str) -> None:
        self._schema, shapes = schema, schema.shapes
        self._classes = {s.tag: jpype.JClass(class_name(s, space)) for s in shapes}
        self._shape_of = {self._classes[s.tag]: s for s in shapes}
        self._shape_classes = {s.tag: jpype.JClass(class_name(s)) for s in shapes}
        self._bytes = jpype.JArray(jpype.JByte)
        self._text, self._whole = jpype.JClass("java.lang.String"), jpype.JClass("java.lang.Long")
        self._real = jpype.JClass("java.lang.Double")
        self._truth = jpype.JClass("java.lang.Boolean")

    def entry(self, fields: Fields) -> Any:
        """A tuple or a template as an entry; types and `...` are null there."""
        shape, _ = self._schema.route(fields)
        return self._classes[shape.tag](*self._values(shape, fields))

    def template_of_all(self, template: Fields) -> Any:
        """A template that the entries of all spaces match."""
        shape, _ = self._schema.route(template)
        return self._shape_classes[shape.tag](*self._values(shape, template))

    def _values(self, shape: Shape, fields: Fields) -> Iterator[Any]:
        """The values of the class's fields: all but the tag, which the class says."""
        tag_at = shape.tag_at
        return map(self._value, (*fields[:tag_at], *fields[tag_at + 1 :]))

    def _value(self, value: Any) -> Any:
        if value is ... or isinstance(value, type):
            return None
        return self._bytes(value) if isinstance(value, bytes) else value

    def fields(self, entry: Any) -> Fields:
        """An entry as a tuple."""
        shape = self._shape_of[type(entry)]
        fields = list(map(self._back, entry.values()))
        fields.insert(shape.tag_at, shape.tag)
        return tuple(fields)

    def _back(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, self._text):
            return str(value)
        if isinstance(value, self._whole):
            return int(value)
        if isinstance(value, self._truth):
            return bool(value)
        return float(value) if isinstance(value, self._real) else bytes(value)
