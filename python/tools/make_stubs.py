"""Writes the static types of the native module, and of its asyncio twin.

    python python/tools/make_stubs.py            writes _native.pyi, searching.pyi,
                                                 aio/__init__.pyi, and gathering.pyi of
                                                 batteries and aio
    python python/tools/make_stubs.py --check    fails if a file is not what would be written

A template has a pattern per field, and the type of the result follows from them: a type or a formal
stands for a value of that type, `...` for anything, a value for itself. Type checkers have no way
to say that for any number of fields, so each verb gets an overload for each combination of patterns
of up to four fields. Beyond that a field is `Any`. A class of entries stands for its instances.
"""

import sys
from functools import partial
from itertools import product
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "tupelo"
NATIVE = (Path(__file__).with_name("native_head.pyi"), PACKAGE / "_native.pyi")
AIO = (Path(__file__).with_name("aio_head.pyi"), PACKAGE / "aio" / "__init__.pyi")
SEARCHING = (Path(__file__).with_name("searching_head.pyi"), PACKAGE / "searching.pyi")
GATHER_HEAD = Path(__file__).with_name("gather_head.pyi")
GATHER = (GATHER_HEAD, PACKAGE / "batteries" / "gathering.pyi")
AIO_GATHER = (GATHER_HEAD, PACKAGE / "aio" / "gathering.pyi")

FIELDS_MAX = 4
TYPE_VARIABLES = "ABCD"

# The order matters: the first overload that fits counts, and a plain value fits everything.
FORMS = (
    ("EllipsisType | UnionType | AnyFormal", "Any"),
    ("type[{0}] | Formal[{0}]", "{0}"),
    ("{0}", "{0}"),
)

TERMS = "max_attempts: int | None = None, order: Order = 'fifo'"

SUBSCRIBE = (
    "on: EventKind | Iterable[EventKind] = 'put', buffer: int = 1024, "
    "buffer_bytes: int | None = None"
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
    ("claim", f"ttl: Seconds = 30, timeout: Seconds | None = None, {TERMS}", "Claim[{0}]"),
    ("try_claim", f"ttl: Seconds = 30, {TERMS}", "Claim[{0}] | None"),
    ("dead", "", "list[DeadLetter[{0}]]"),
    ("subscribe", SUBSCRIBE, "Subscription[{0}]"),
    ("scan", "", "Iterator[{0}]"),
    ("consume", "idle: Seconds | None = None", "Iterator[{0}]"),
    ("take_future", "", "Future[{0}]"),
    ("read_future", "", "Future[{0}]"),
    ("swap", "to: tuple[Any, ...] | Entry, timeout: Seconds | None = None", "{0}"),
    ("try_swap", "to: tuple[Any, ...] | Entry", "{0} | None"),
)

# The same of a search in several spaces.
SEARCH_VERBS = (
    ("take", "timeout: Seconds | None = None", "Found[{0}]"),
    ("read", "timeout: Seconds | None = None", "Found[{0}]"),
    ("try_take", "", "Found[{0}] | None"),
    ("try_read", "", "Found[{0}] | None"),
)
SEARCH_MARK = "# The verbs of a search stand here.\n"

# The verbs that a transaction has, too: they stand in a base class of both.
SHARED = (
    "take", "read", "try_take", "try_read", "take_all", "read_all", "take_many", "swap", "try_swap",
)  # fmt: skip
MARK = "# The verbs that spaces and transactions share stand here.\n"
# Every verb with a template has it (rule M9).
WHERE = "where: str | None = None"

# What gives an object at once that is itself awaited, or gone through.
NO_COROUTINES = ("claim", "subscribe", "scan", "consume")


def overloads(name: str, keywords: str, result: str, *, first: str = "self, ") -> list[str]:
    """Return the definitions of one verb, a line each; `first` stands before the patterns."""
    keywords = f"{keywords}, {WHERE}" if keywords else WHERE
    last = f", *, {keywords}"
    fallback_last = f", {keywords}"
    lines: list[str] = []
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
    entries = result.format("E")
    # A sole class of entries or an entry fits the overloads of one field too, which come later.
    ignored = "  # type: ignore[overload-overlap]"
    behind = f", *, {keywords}, **fields: Any"
    by_class = f"def {name}({first}entry: type[E], /{behind}) -> {entries}: ...{ignored}"
    by_value = f"def {name}({first}entry: E, /{last}) -> {entries}: ...{ignored}"
    return [by_class, by_value, sole, *lines, rest]


def verbs(*, awaited: bool, shared: bool) -> list[str]:
    """Return the overloads of the class `Space`, or of the base that transactions share with it."""
    lines = []
    for name, keywords, result in VERBS:
        if (name in SHARED) != shared:
            continue
        if awaited and result.startswith("Future"):
            continue  # a task is one
        prefix = "async " if awaited and name not in NO_COROUTINES else ""
        returned = result.replace("Iterator", "AsyncIterator") if awaited else result
        for line in overloads(name, keywords, returned):
            lines += ["    @overload", f"    {prefix}{line}"]
    return lines


def with_shared(head: str, *, awaited: bool) -> str:
    """Return the head with the class of the shared verbs in its place."""
    verbs_class = "\n".join(["class _Verbs:", *verbs(awaited=awaited, shared=True)])
    return filled(head, MARK, verbs_class + "\n")


def with_search(head: str, *, awaited: bool) -> str:
    """Return the head with the verbs of a search in their place."""
    prefix = "async " if awaited else ""
    lines = [
        f"    {line}"
        for verb in SEARCH_VERBS
        for overload in overloads(*verb)
        for line in ("@overload", prefix + overload)
    ]
    return filled(head, SEARCH_MARK, "\n".join(lines) + "\n")


def search_function(*, awaited: bool) -> list[str]:
    """Return the overloads of `search`, a line each."""
    keywords = "timeout: Seconds | None = None, want: Literal['take', 'read'] = 'take'"
    prefix = "async " if awaited else ""
    definitions = overloads("search", keywords, "Found[{0}]", first="spaces: Iterable[Space], ")
    return [line for overload in definitions for line in ("@overload", prefix + overload)]


def filled(head: str, mark: str, text: str) -> str:
    """Return the head with `text` in the place of a line of it."""
    before, found, behind = head.partition(mark)
    if not found:
        message = f"the head of the stub has no line {mark!r}"
        raise ValueError(message)
    return before + text + behind


def native_stub(head: str) -> str:
    """Return the text of the native module's stub."""
    head = with_shared(head, awaited=False)
    lines = [head.rstrip(), *verbs(awaited=False, shared=False)]
    for line in overloads("like", "", "Template[{0}]", first=""):
        lines += ["@overload", line]
    return "\n".join(lines) + "\n"


def aio_stub(head: str) -> str:
    """Return the text of the asyncio twin's stub."""
    head = with_search(with_shared(head, awaited=True), awaited=True)
    lines = [*verbs(awaited=True, shared=False), *search_function(awaited=True)]
    return "\n".join([head.rstrip(), *lines]) + "\n"


def searching_stub(head: str) -> str:
    """Return the text of the stub of `tupelo.searching`."""
    head = with_search(head, awaited=False)
    return "\n".join([head.rstrip(), *search_function(awaited=False)]) + "\n"


def gather_stub(head: str, *, awaited: bool = False) -> str:
    """Return the text of the stub of `gather`, a battery that takes a template."""
    space = "from tupelo.aio import Space" if awaited else "from tupelo._native import Space"
    prefix = "async " if awaited else ""
    keywords = "n: int, timeout: Seconds | None = None, progress: str | bool = False"
    lines = [head.replace("# The space stands here.", space).rstrip()]
    for line in overloads("gather", keywords, "Rows[{0}]", first="space: Space, "):
        lines += ["@overload", prefix + line]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the stubs, or check that they are current."""
    code = 0
    stubs = (
        (NATIVE, native_stub),
        (SEARCHING, searching_stub),
        (AIO, aio_stub),
        (GATHER, gather_stub),
        (AIO_GATHER, partial(gather_stub, awaited=True)),
    )
    for (head, path), stub in stubs:
        text = stub(head.read_text(encoding="utf-8"))
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path} is not current: run python {Path(__file__).name}", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
