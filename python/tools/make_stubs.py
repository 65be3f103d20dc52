"""Writes the static types of the native module, and of its asyncio twin.

    python python/tools/make_stubs.py            writes _native.pyi, searching.pyi,
                                                 aio/__init__.pyi, and gathering.pyi of
                                                 batteries and aio
    python python/tools/make_stubs.py --check    fails if a file is not what would be written

A template has a pattern per field, and the type of the result follows from the patterns. A type or
a formal stands for a value of that type, `...` for anything, a value for itself. Type checkers have
no way to say that for any number of fields. So each verb has an overload for each combination of
two forms of patterns, for up to four fields. In a template of three or four fields a value is
`Any`, and so are all fields beyond four, and the first of four. A class of entries stands for its
instances.

The docstrings are those of the running package, so it has to be built before. They stand in the
first overload of each verb, where editors look for them.
"""

import ast
import importlib
import inspect
import sys
import textwrap
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
# A checker leaves the type variable of `...` open, so it takes its default, which is `Any`.
KINDS = "ABCD"
# Beyond these two fields a value is `Any`: more type variables would cost a checker seconds.
VALUES = "VW"


def forms(field: int, count: int) -> tuple[tuple[str, str], ...]:
    """Return the forms of the pattern of one of `count` fields, each with the type of the field."""
    kind = KINDS[field]
    if count == 1:
        value = ("Sole", "Sole")
    elif count <= len(VALUES):
        value = (VALUES[field], VALUES[field])
    else:
        value = ("Value", "Any")
    return ((f"EllipsisType | type[{kind}] | Formal[{kind}]", kind), value)


SYNC = "sync: Sync | None = None"

TERMS = f"max_attempts: int | None = None, order: Order = 'fifo', {SYNC}"

SUBSCRIBE = (
    "on: EventKind | Iterable[EventKind] = 'put', buffer: int = 1024, "
    "buffer_bytes: int | None = None, resume: str | None = None, keep: int | None = None"
)

# Name, keyword arguments, result for a tuple of type {0}.
VERBS = (
    ("take", f"timeout: Seconds | None = None, order: Order = 'fifo', {SYNC}", "{0}"),
    ("read", "timeout: Seconds | None = None, order: Order = 'fifo'", "{0}"),
    ("try_take", f"order: Order = 'fifo', {SYNC}", "{0} | None"),
    ("try_read", "order: Order = 'fifo'", "{0} | None"),
    ("take_all", f"limit: int | None = None, {SYNC}", "list[{0}]"),
    ("read_all", "limit: int | None = None", "list[{0}]"),
    (
        "take_many",
        f"n: int, at_least: int | None = None, timeout: Seconds | None = None, {SYNC}",
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
    ("swap", f"to: tuple[Any, ...] | Entry, timeout: Seconds | None = None, {SYNC}", "{0}"),
    ("try_swap", f"to: tuple[Any, ...] | Entry, {SYNC}", "{0} | None"),
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

    def one(patterns: str, returned: str, behind: str = "") -> str:
        return f"def {name}({first}{patterns}, {keywords}{behind}) -> {returned}: ..."

    any_number = result.format("tuple[Any, ...]")
    union, tail = "Pattern | UnionType", "Pattern | UnionType | Rest"
    return [
        one("entry: type[E], /, *", result.format("E"), ", **fields: Any"),
        one("entry: E, /, *", result.format("E")),
        one("template: Template[T], /, *", result.format("T")),
        *(
            one(f"{patterns}, /, *", result.format(f"tuple[{fields}]"))
            for patterns, fields in combinations()
        ),
        one("*rest: Rest", any_number),
        one("a: Pattern, b: Pattern | Rest, /, *", any_number),
        one(f"a: {union}, b: {union}, c: {tail}, d: {tail} = ..., /, *", any_number),
        one("a: Any, b: Any, c: Any, d: Any, e: Any, /, *more: Any", any_number),
    ]


def combinations() -> list[tuple[str, str]]:
    """Return the patterns of one to four fields, each with the types of the fields found.

    A union of types in one or two fields fits none of the two forms. Its form comes behind them: a
    string would be taken for the name of a type.
    """
    unions = [(f"TypeForm[{kind}]", kind) for kind in KINDS]
    plain = [[forms(field, count) for field in range(count)] for count in range(1, FIELDS_MAX)]
    fourth = [
        (("Pattern | UnionType", "Any"),),
        *(forms(i, FIELDS_MAX) for i in range(1, FIELDS_MAX)),
    ]
    choices = [
        *(chosen for fields in (*plain, fourth) for chosen in product(*fields)),
        (unions[0],),
        *((form, unions[1]) for form in plain[1][0]),
        *((unions[0], form) for form in (*plain[1][1], unions[1])),
    ]
    return [
        (
            ", ".join(f"{name}: {form}" for name, (form, _) in zip("abcd", chosen, strict=False)),
            ", ".join(field for _, field in chosen),
        )
        for chosen in choices
    ]


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


def documented(text: str, module: str) -> str:
    """Return the stub with the docstrings of the running module, each where its name is first."""
    lines = text.splitlines()
    running = importlib.import_module(module)
    found: dict[int, str] = {}

    def look(body: list[ast.stmt], owner: object, indent: str) -> None:
        seen: set[str] = set()
        for node in body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            name = "Space" if node.name == "_Verbs" else node.name
            if node.name in seen or node.name.startswith("__"):
                continue
            seen.add(node.name)
            one = getattr(owner, name, None)
            if isinstance(node, ast.ClassDef):
                look(node.body, one, indent + "    ")
            elif doc := inspect.getdoc(one):
                found[int(node.end_lineno or 0) - 1] = textwrap.indent(
                    f'r"""{doc}\n"""', indent + "    "
                )

    look(ast.parse(text).body, running, "")
    for number, doc in found.items():
        head, _, behind = lines[number].rpartition(": ...")
        lines[number] = f"{head}:{behind}\n{doc}"
    return "\n".join(lines) + "\n"


def module_of(stub: Path) -> str:
    """Return the name of the module that a stub describes."""
    parts = stub.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


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
        text = documented(stub(head.read_text(encoding="utf-8")), module_of(path))
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path} is not current: run python {Path(__file__).name}", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
