"""What a class of entries looks like: dataclasses, NamedTuples, attrs and msgspec classes.

The native module asks once per class. attrs and msgspec are recognised by what their classes carry;
they are not imported unless the program did so itself.
"""

from __future__ import annotations

import dataclasses
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    # Name, argument of the constructor (None: set afterwards), whether it has a default.
    Field: TypeAlias = tuple[str, str | None, bool]
    # Name of the class, names of its bases, fields, how entries are made, whether that never fails.
    Description: TypeAlias = tuple[str, list[str], list[Field], str, bool]

__all__ = ["describe"]

NAME = "__tupelo_name__"
"""The attribute of a class whose entries go by another name than the class."""

GENERATED = "<"
"""What the file name of code begins with that `dataclass` and `attrs` have generated."""


def describe(cls: type[Any]) -> Description | None:
    """Describe a class of entries; None if it is none.

    Entries are made by `positions` (arguments in the order of the fields), by `keywords`, or, of a
    NamedTuple, from a `sequence` of the fields. A class whose own code runs when an entry is made
    may refuse one; of others it is known that it never does.
    """
    described = _fields(cls)
    if described is None:
        return None
    fields, how, never_fails = described
    bases = [_name(base) for base in cls.__mro__[1:] if _fields(base) is not None]
    return _name(cls), bases, fields, how, never_fails


def _name(cls: type[Any]) -> str:
    return str(cls.__dict__.get(NAME, cls.__name__))


def _fields(cls: type[Any]) -> tuple[list[Field], str, bool] | None:
    if issubclass(cls, tuple):
        return _of_named_tuple(cls) if hasattr(cls, "_field_defaults") else None
    if dataclasses.is_dataclass(cls):
        return _of_dataclass(cls)
    if hasattr(cls, "__attrs_attrs__"):
        return _of_attrs(cls)
    if (
        hasattr(cls, "__struct_fields__")
        and not cls.__module__.startswith("msgspec.")
        and cls.__module__ != "msgspec"
    ):
        return _of_struct(cls)
    return None


def _of_named_tuple(cls: Any) -> tuple[list[Field], str, bool]:
    fields: list[Field] = [(name, name, name in cls._field_defaults) for name in cls._fields]
    return fields, "sequence", True


def _of_dataclass(cls: Any) -> tuple[list[Field], str, bool]:
    missing = dataclasses.MISSING
    all_fields = dataclasses.fields(cls)
    fields: list[Field] = [
        (
            field.name,
            field.name if field.init else None,
            not (field.default is missing and field.default_factory is missing),
        )
        for field in all_fields
    ]
    by_keywords = any(field.kw_only for field in all_fields)
    never_fails = not hasattr(cls, "__post_init__") and _is_generated(cls)
    return fields, "keywords" if by_keywords else "positions", never_fails


def _of_attrs(cls: Any) -> tuple[list[Field], str, bool]:
    nothing = sys.modules["attr"].NOTHING
    attributes = cls.__attrs_attrs__
    fields: list[Field] = [
        (
            attribute.name,
            attribute.alias if attribute.init else None,
            attribute.default is not nothing,
        )
        for attribute in attributes
    ]
    by_keywords = any(attribute.kw_only for attribute in attributes)
    hooks = ("__attrs_pre_init__", "__attrs_post_init__")
    never_fails = (
        not any(hasattr(cls, hook) for hook in hooks)
        and not any(attribute.validator or attribute.converter for attribute in attributes)
        and _is_generated(cls)
    )
    return fields, "keywords" if by_keywords else "positions", never_fails


def _of_struct(cls: Any) -> tuple[list[Field], str, bool]:
    from msgspec.structs import fields as infos_of  # noqa: PLC0415 - only where it is loaded

    infos = infos_of(cls)
    fields: list[Field] = [(info.name, info.name, not info.required) for info in infos]
    return fields, "keywords", not hasattr(cls, "__post_init__")


def _is_generated(cls: type[Any]) -> bool:
    """Whether making an instance runs only what the decorator has generated."""
    code = getattr(cls.__init__, "__code__", None)
    return (
        code is not None
        and code.co_filename.startswith(GENERATED)
        and "__new__" not in {name for base in cls.__mro__[:-1] for name in vars(base)}
        and cls.__setattr__ in (object.__setattr__, cls.__dict__.get("__setattr__"))
    )
