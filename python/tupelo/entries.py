"""What a class of entries looks like: dataclasses, NamedTuples, attrs and msgspec classes.

The native module asks once per class. attrs and msgspec are recognised by what their classes carry;
they are not imported unless the program did so itself.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from types import MemberDescriptorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, TypeAlias

    # Name, argument of the constructor (None: set afterwards), whether it has a default.
    Field: TypeAlias = tuple[str, str | None, bool]
    # Name of the class, names of its bases, fields, how entries are made, whether that never fails.
    Description: TypeAlias = tuple[str, list[str], list[Field], str, bool]

__all__ = ["describe"]

NAME = "__tupelo_name__"
"""The attribute of a class whose entries go by another name than the class."""

DATACLASS_INIT = "__create_fn__.<locals>.__init__"
"""The qualified name of the code that `dataclass` generates. Its file name is also that of what is
written at a prompt."""

ATTRS_FILE = "<attrs generated"
"""What the file name of code begins with that `attrs` generates."""


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
    never_fails = never_fails and not _runs_other_code(cls, fields)
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
    code = _code_of(cls.__init__)
    never_fails = (
        code is not None
        and code.co_qualname == DATACLASS_INIT
        and not hasattr(cls, "__post_init__")
        and not any(field.default_factory is not missing for field in all_fields if not field.init)
        # One that is frozen sets its fields by way of `object`.
        and (cls.__dataclass_params__.frozen or cls.__setattr__ is object.__setattr__)
        and _takes_exactly(cls, fields, "__dataclass_fields__")
    )
    return fields, _how(cls, fields), never_fails


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
    code = _code_of(cls.__init__)
    hooks = ("__attrs_pre_init__", "__attrs_post_init__")
    never_fails = (
        code is not None
        and code.co_filename.startswith(ATTRS_FILE)
        and not any(hasattr(cls, hook) for hook in hooks)
        and all(
            attribute.init and not attribute.validator and not attribute.converter
            for attribute in attributes
        )
        # One that is frozen sets its fields by way of `object`.
        and (cls.__setattr__ is object.__setattr__ or cls.__setattr__.__module__ == "attr._make")
        and _takes_exactly(cls, fields, "__attrs_attrs__")
    )
    return fields, _how(cls, fields), never_fails


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
    """By `positions` only if those of the constructor are the fields, in their order.

    A constructor by hand may have another order, and one with an `InitVar` has more arguments.
    """
    code = _code_of(cls.__init__)
    positional = () if code is None else code.co_varnames[1 : code.co_argcount]
    return "positions" if positional == _arguments(fields) else "keywords"


def _takes_exactly(cls: Any, fields: list[Field], sign: str) -> bool:
    """Whether the constructor is of the class that has the `sign` of these fields, and takes them.

    One that was inherited knows fewer; one with an `InitVar` wants more.
    """
    code = cls.__init__.__code__
    arguments = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return _owner(cls, "__init__") is _owner(cls, sign) and {*arguments} == {*_arguments(fields)}


def _owner(cls: type[Any], name: str) -> type[Any] | None:
    """Return the class in whose body `name` stands."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def _runs_other_code(cls: Any, fields: list[Field]) -> bool:
    """Whether code that the constructor does not show may refuse an instance."""
    if issubclass(cls, tuple):
        return _owner(cls, "_make") is not _owner(cls, "_fields")
    if hasattr(cls, "__struct_fields__"):
        return False  # made by msgspec, which looks at nothing of the class but its fields
    return (
        type(cls).__call__ is not type.__call__
        or any("__new__" in vars(base) for base in cls.__mro__[:-1])
        or bool(getattr(cls, "__abstractmethods__", None))
        or any(_sets(inspect.getattr_static(cls, name, None)) for name, _, _ in fields)
    )


def _sets(attribute: Any) -> bool:
    """Whether it is told of a value that is set. A place of `__slots__` just takes it."""
    return hasattr(type(attribute), "__set__") and not isinstance(attribute, MemberDescriptorType)
