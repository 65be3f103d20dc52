"""Writes python/tupelo/_native.pyi: the static types of the native module.

    python python/tools/make_stubs.py            writes the file
    python python/tools/make_stubs.py --check    fails if the file is not what would be written

A template has a pattern per field, and the type of the result follows from them: a type or a formal
stands for a value of that type, `...` for anything, a value for itself. Type checkers have no way
to say that for any number of fields, so each verb gets an overload for each combination of patterns
of up to four fields. Beyond that a field is `Any`.
"""

import sys
from itertools import product
from pathlib import Path

STUB = Path(__file__).parents[1] / "tupelo" / "_native.pyi"
HEAD = Path(__file__).with_name("native_head.pyi")

FIELDS_MAX = 4
TYPE_VARIABLES = "ABCD"

# The order matters: the first overload that fits counts, and a plain value fits everything.
FORMS = (
    ("EllipsisType | UnionType | AnyFormal", "Any"),
    ("type[{0}] | Formal[{0}]", "{0}"),
    ("{0}", "{0}"),
)

# Name, keyword arguments, result for a tuple of type {0}.
VERBS = (
    ("take", "timeout: Seconds | None = None, order: Order = 'fifo'", "{0}"),
    ("read", "timeout: Seconds | None = None, order: Order = 'fifo'", "{0}"),
    ("try_take", "order: Order = 'fifo'", "{0} | None"),
    ("try_read", "order: Order = 'fifo'", "{0} | None"),
    ("take_all", "limit: int | None = None", "list[{0}]"),
    ("read_all", "limit: int | None = None", "list[{0}]"),
    (
        "take_many",
        "n: int, at_least: int | None = None, timeout: Seconds | None = None",
        "list[{0}]",
    ),
    ("scan", "", "Iterator[{0}]"),
    ("consume", "idle: Seconds | None = None", "Iterator[{0}]"),
    ("swap", "to: tuple[Any, ...], timeout: Seconds | None = None", "{0}"),
    ("try_swap", "to: tuple[Any, ...]", "{0} | None"),
)


def overloads(name: str, keywords: str, result: str, *, method: bool = True) -> list[str]:
    """Return the definitions of one verb, a line each."""
    first = "self, " if method else ""
    last = f", *, {keywords}" if keywords else ""
    fallback_last = f", {keywords}" if keywords else ""
    lines = []
    for count in range(1, FIELDS_MAX + 1):
        for forms in product(FORMS, repeat=count):
            pairs = list(zip(forms, TYPE_VARIABLES, strict=False))
            patterns = ", ".join(
                f"{variable.lower()}: {pattern.format(variable)}"
                for (pattern, _), variable in pairs
            )
            fields = ", ".join(field.format(variable) for (_, field), variable in pairs)
            returned = result.format(f"tuple[{fields}]")
            lines.append(f"def {name}({first}{patterns}, /{last}) -> {returned}: ...")
    any_number = result.format("tuple[Any, ...]")
    for count in range(FIELDS_MAX + 1):
        patterns = "".join(f"{variable.lower()}: Any, " for variable in TYPE_VARIABLES[:count])
        lines.insert(
            count, f"def {name}({first}{patterns}rest: Rest, /{last}) -> {any_number}: ..."
        )
    sole = f"def {name}({first}template: Template[T], /{last}) -> {result.format('T')}: ..."
    sole += "  # type: ignore[overload-overlap]"
    rest = f"def {name}({first}*template: Any{fallback_last}) -> {any_number}: ..."
    return [sole, *lines, rest]


def stub() -> str:
    """Return the text of the stub."""
    text = HEAD.read_text(encoding="utf-8")
    lines = [text.rstrip()]
    for name, keywords, result in VERBS:
        for line in overloads(name, keywords, result):
            lines += ["    @overload", f"    {line}"]
    for line in overloads("like", "", "Template[{0}]", method=False):
        lines += ["@overload", line]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the stub, or check that it is current."""
    if sys.argv[1:] == ["--check"]:
        if STUB.read_text(encoding="utf-8") == stub():
            return 0
        print(f"{STUB} is not current: run python {Path(__file__).name}", file=sys.stderr)
        return 1
    STUB.write_text(stub(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
