"""Checks that sentences are short: in pages, in docstrings, in the documentation of Rust items.

A sentence of more than 30 words is a finding. CONTRIBUTING.md ("Prose") asks for 25. Code, tables,
the addresses of links and generated pages do not count.

    python tools/check_prose.py [PATH ...]
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS_MAX = 30
# Pages that programs make.
GENERATED = ("docs/results/", "docs/make-bench.txt")
# A sentence ends at a stop before a capital or a quotation, and at the end of its paragraph.
END = re.compile(
    r"(?<![.\s][a-z])(?<!e\.g)(?<!i\.e)[.!?:]['\"”)*`_]*(?:\s+(?=[\"'(\[`*_A-Z0-9])|\s*$)"
)
INLINE_CODE = re.compile(r"``.+?``|`[^`]+`")
LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")
# A line that begins a new paragraph: a heading, an item, a row, a quotation, a docstring's section.
BEGINS = re.compile(r"\s*(?:#+ |[-*+] |\d+\. |\||>|[A-Z][A-Za-z ]*:\s*$|[A-Za-z_*][\w*, ]*: )")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs of a page or docstring, each with the number of its first line, from 0."""
    lines: list[str] = []
    first, fence = 0, ""
    for number, written in enumerate([*text.splitlines(), ""]):
        line = written
        mark = line.strip()[:3]
        if fence or mark in {"```", "~~~"}:
            fence = ("" if mark == fence else fence) if fence else mark
            line = ""
        is_code = line.lstrip().startswith((">>>", "... ", "|")) or (
            line.startswith("    ") and not lines
        )
        if not line.strip() or is_code or (lines and BEGINS.match(line)):
            if lines:
                yield first, " ".join(lines)
            lines = []
        if line.strip() and not is_code:
            if not lines:
                first = number
            lines.append(line.strip())


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph, each piece of code as one word."""
    plain = LINK.sub(r"\1", INLINE_CODE.sub("`code`", paragraph))
    yield from END.split(plain)


def long_sentences(text: str) -> Iterator[tuple[int, str, int]]:
    """The line, the beginning and the number of words of each sentence that is too long."""
    for line, paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            words = re.findall(r"\w[\w'\u2019.,/-]*", sentence)
            if len(words) > WORDS_MAX:
                yield line, sentence.strip(), len(words)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The prose of a file, each with the number of its first line."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield 1, content
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node, clean=True)
                if text is not None:
                    yield node.body[0].lineno, text
    elif path.suffix == ".rs":
        yield from documentation(content)


def documentation(content: str) -> Iterator[tuple[int, str]]:
    """The comments of a Rust file that are documentation."""
    lines: list[str] = []
    for number, line in enumerate([*content.splitlines(), ""], 1):
        match = re.match(r"\s*//[/!] ?(.*)", line)
        if match:
            lines.append(match[1])
        elif lines:
            yield number - len(lines), "\n".join(lines)
            lines = []


def tracked() -> list[Path]:
    """The files of the tree that have prose."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "*.md", "*.py", "*.rs"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(name) for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and not str(path).startswith(GENERATED)]


def main(names: list[str]) -> int:
    """Print the findings; 1 if there are any."""
    found = 0
    for path in [Path(name) for name in names] or tracked():
        for first, text in texts(path):
            for line, sentence, words in long_sentences(text):
                found += 1
                print(f"{path}:{first + line}: {words} words: {sentence[:60]} …")
    print(f"check_prose: {found} sentences have more than {WORDS_MAX} words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
