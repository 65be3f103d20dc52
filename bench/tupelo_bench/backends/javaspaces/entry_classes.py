"""The sources of JavaSpaces' entry classes: one per shape, and a subclass of it per space.

The class says the tag, so that no entry carries it as a field. A template of a class is matched by
the entries of its subclasses: so one of a shape's own class asks all spaces at once, one of a
subclass asks a single space.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.backends.base import Shape


def entry_classes(shapes: Iterable[Shape], spaces: Sequence[str]) -> dict[str, str]:
    """The names of all classes for these spaces, and their sources."""
    wanted = {}
    for shape in shapes:
        wanted[class_name(shape)] = shape_class(shape)
        if len(spaces) > 1:
            wanted |= {class_name(shape, each): space_class(shape, each) for each in spaces}
    return wanted


def class_name(shape: Shape, space: str = "") -> str:
    """The class of a shape, or the subclass of it in a space.

    The number at its end is a hash of the exact letters. Without it "a-b" and "a b" would be one
    class. On a disk that does not tell capitals, "ab" and "Ab" would be one file.
    """
    told = f"{space} {shape.tag}"
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in told)
    exact = blake2s(f"{space}\0{shape.tag}".encode(), digest_size=4).hexdigest()
    return f"Entry{words.title().replace(' ', '')}{shape.arity}_{exact}"


def field_names(shape: Shape) -> list[str]:
    """The fields of a shape's class: all but the tag."""
    return [f"f{place}" for place in range(shape.arity) if place != shape.tag_at]


def shape_class(shape: Shape) -> str:
    """The source of a shape's class."""
    name, fields = class_name(shape), field_names(shape)
    lines = [
        f"public class {name} implements Entries.Shape {{",
        *(f"  public Object {field};" for field in fields),
        f"  public {name}() {{}}",
        *constructor(name, fields, [f"this.{field} = {field};" for field in fields]),
        f"  public Object[] values() {{ return new Object[] {{{', '.join(fields)}}}; }}",
        "}",
    ]
    return "\n".join(lines) + "\n"


def space_class(shape: Shape, space: str) -> str:
    """The source of a shape's class in one of several spaces."""
    name, fields = class_name(shape, space), field_names(shape)
    lines = [
        f"public final class {name} extends {class_name(shape)} {{",
        f"  public {name}() {{}}",
        *constructor(name, fields, [f"super({', '.join(fields)});"]),
        "}",
    ]
    return "\n".join(lines) + "\n"


def constructor(name: str, fields: list[str], statements: list[str]) -> list[str]:
    """The constructor from the fields; none for a class without any, whose plain one is it."""
    if not fields:
        return []
    arguments = ", ".join(f"Object {field}" for field in fields)
    return [f"  public {name}({arguments}) {{", *(f"    {each}" for each in statements), "  }"]
