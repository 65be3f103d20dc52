"""An extension of griffe: the reference of what is written in Rust.

The stub of `tupelo._native` has the types, in many overloads per verb. The module itself has the
help, and one signature per verb. The extension puts them together, and links names in the help.
"""

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

NATIVE = "tupelo._native"
PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
PAGE = re.compile(r"^::: (\S+)$", re.MULTILINE)
"""What a page of the reference is about."""
NAME = re.compile(r"(?<!`)`(tupelo(?:\.\w+)+)`")
EXAMPLE = re.compile(r"^ *>>> .*(?:\n *\S.*)*", re.MULTILINE)
"""A statement, what it prints, and the statements that follow without an empty line."""


class Native(griffe.Extension):
    """Fills in the classes and functions of the native module when the package was read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give each public name of the module its help."""
        stub, runtime = pkg["_native"], importlib.import_module(NATIVE)
        for name, value in vars(runtime).items():
            if inspect.isclass(value) and name in stub.members:
                fill_class(stub[name], value)
            elif stub.overloads.get(name):
                stub.set_member(name, one_of(stub.overloads[name], value))
            elif callable(value) and name in stub.members:
                stub[name].docstring = help_of(value, stub[name])
        reference = set(PAGE.findall("".join(page.read_text("utf-8") for page in PAGES)))
        for each in documented(pkg):
            each.docstring.value = with_links(fenced(each.docstring.value), reference, pkg)


def documented(parent: griffe.Object) -> Iterator[griffe.Object]:
    """The object and all in it, as far as they have a docstring."""
    if parent.docstring is not None:
        yield parent
    for member in parent.members.values():
        if not member.is_alias:
            yield from documented(member)


def fenced(text: str) -> str:
    """Mark the examples of a docstring as programs: without it, their brackets would be links.

    Behind the last section some are indented, and would be read as a part of it.
    """
    return EXAMPLE.sub(lambda example: f"```pycon\n{textwrap.dedent(example[0])}\n```", text)


def with_links(text: str, reference: set[str], pkg: griffe.Module) -> str:
    """Let each name of the reference that a docstring has in backticks lead there."""

    def linked(name: re.Match[str]) -> str:
        path = name[1]
        parent, _, member = path.rpartition(".")
        known = parent in reference and member in pkg[parent.removeprefix("tupelo.")].members
        return f"[`{path}`][{path}]" if path in reference or known else name[0]

    return NAME.sub(linked, text)


def fill_class(stub: griffe.Class, runtime: type) -> None:
    """Give a class and its members their help, in the order of the module."""
    stub.docstring = help_of(runtime, stub)
    overloads = {name: each for base in bases_of(stub) for name, each in base.overloads.items()}
    for name, value in vars(runtime).items():
        if name.startswith("_"):
            continue
        if name in stub.members:
            stub.members[name].docstring = help_of(value, stub.members[name])
        elif overloads.get(name):
            stub.set_member(name, one_of(overloads[name], value))


def bases_of(stub: griffe.Class) -> Iterator[griffe.Class]:
    """The classes of the stub from which this one gets overloads, and itself as the last."""
    for base in stub.bases:
        name = str(base).partition("[")[0]
        inherited = stub.parent.members.get(name)
        if inherited is not None and not inherited.is_alias:
            yield from bases_of(inherited)
    yield stub


def one_of(overloads: list[griffe.Function], runtime: Any) -> griffe.Function:
    """One function for all overloads: the parameters of the module, the types of the last one."""
    general = overloads[-1]
    types = {parameter.name: parameter.annotation for parameter in general.parameters}
    parameters = [
        griffe.Parameter(
            each.name,
            kind=getattr(griffe.ParameterKind, each.kind.name.lower()),
            annotation=types.get(each.name),
            default=None if each.default is each.empty else repr(each.default),
        )
        for each in inspect.signature(runtime).parameters.values()
    ]
    function = griffe.Function(
        general.name, parameters=griffe.Parameters(*parameters), returns=general.returns
    )
    function.docstring = help_of(runtime, function)
    return function


def help_of(runtime: Any, parent: griffe.Object) -> griffe.Docstring | None:
    """The help of an object, as griffe reads it."""
    text = inspect.getdoc(runtime)
    options = {"warn_missing_types": False, "warn_unknown_params": False}
    if not text:
        return None
    return griffe.Docstring(text, parent=parent, parser="google", parser_options=options)
