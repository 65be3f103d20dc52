"""The form of a class of entries: dataclasses, NamedTuples, attrs and msgspec classes.

The native module asks once per class, and once for each stored entry of an unknown class. attrs and
msgspec are recognised by the attributes of their classes. They are not imported unless the program
did so itself.
"""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, TypeAlias

    # Name, argument of the constructor (None: set afterwards), whether it has a default.
    Field: TypeAlias = tuple[str, str | None, bool]
    # Name of the class, names of its bases, fields, how entries are made, whether making never
    # fails. Last, why no entry can be made of stored fields, if so.
    Description: TypeAlias = tuple[str, list[str], list[Field], str, bool, str | None]

__all__ = ["describe", "imported", "name_of"]

NAME = "__tupelo_name__"
"""The attribute of a class whose entries go by another name than the class."""


def describe(cls: type[Any]) -> Description | None:
    """Describe a class of entries; None if it is none.

    Entries are made by `positions` (arguments in the order of the fields) or by `keywords`. A
    NamedTuple is made as any `tuple` is, or from a `sequence` of the fields by a `_make` of its
    own. Making an entry may fail if code in Python runs for it, even code that does nothing: Ctrl-C
    arrives in it.
    """
    described = _fields(cls)
    if described is None:
        return None
    fields, how, never_fails = described
    bases = [name_of(base) for base in cls.__mro__[1:] if _fields(base) is not None]
    why_never = None if how in {"tuple", "sequence"} else _why_never_made(cls, fields, how)
    return name_of(cls), bases, fields, how, never_fails, why_never


def imported(name: str, fields: list[str]) -> list[type[Any]]:
    """Return the classes of entries that go by a name, of the modules that were imported.

    Classes with exactly these fields exclude the others: names such as `Task` are common.
    """
    found: dict[type[Any], set[str]] = {}
    for module in list(sys.modules.values()):
        # A module of a class of its own may import its attributes as soon as they are looked at.
        if type(module) is not ModuleType:
            continue
        for value in list(vars(module).values()):
            # Not `isinstance`: what stands for another object may say that it is a class.
            if issubclass(type(value), type) and name_of(value) == name:
                described = _fields(value)
                if described is not None:
                    found[value] = {field for field, *_ in described[0]}
    exact = [cls for cls, names in found.items() if names == set(fields)]
    return exact or list(found)


def name_of(cls: type[Any]) -> str:
    """Return the name by which the entries of a class go."""
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
    is_plain = _owner(cls, "_make") is _owner(cls, "_fields")
    return fields, "tuple" if is_plain else "sequence", is_plain


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
    return fields, _how(cls, fields), False


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
    return fields, _how(cls, fields), False


def _of_struct(cls: Any) -> tuple[list[Field], str, bool]:
    from msgspec.structs import fields as infos_of  # noqa: PLC0415 - only where it is loaded

    infos = infos_of(cls)
    fields: list[Field] = [(info.name, info.name, not info.required) for info in infos]
    return fields, "keywords", not hasattr(cls, "__post_init__")


def _code_of(function: Any) -> CodeType | None:
    code: CodeType | None = getattr(function, "__code__", None)
    return code


def _arguments(fields: list[Field]) -> tuple[str, ...]:
    return tuple(argument for _, argument, _ in fields if argument is not None)


def _how(cls: Any, fields: list[Field]) -> str:
    """By `positions` only if the arguments of the constructor are the fields, in their order.

    A constructor by hand may have another order, and one with an `InitVar` has more arguments.
    """
    code = _code_of(cls.__init__)
    positional = () if code is None else code.co_varnames[1 : code.co_argcount]
    return "positions" if positional == _arguments(fields) else "keywords"


def _why_never_made(cls: type[Any], fields: list[Field], how: str) -> str | None:
    """Return why the constructor cannot be called with the fields, if it says so."""
    from inspect import Parameter, signature  # noqa: PLC0415 - only where there is such a class

    try:
        parameters = signature(cls).parameters
    except (TypeError, ValueError):  # it says nothing of itself
        return None
    arguments = _arguments(fields)
    any_number = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    for name, parameter in parameters.items():
        if name in arguments or parameter.kind in any_number:
            continue
        if parameter.default is Parameter.empty:
            return f"its constructor wants {name}, which is no field"
    if how == "positions":
        return None
    by_name = {
        name
        for name, parameter in parameters.items()
        if parameter.kind in {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    }
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    unknown = [] if takes_any else [name for name in arguments if name not in by_name]
    return f"its constructor takes no {unknown[0]}=" if unknown else None


def _owner(cls: type[Any], name: str) -> type[Any] | None:
    """Return the class in whose body `name` stands."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)
