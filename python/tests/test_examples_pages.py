"""The programs of the pages that show below each program what it prints, and the reference."""

import re

import pytest
from test_examples import ALL_PRINT, DOCS, PROGRAMS_OF, run, workers_of

import tupelo as ts
from tupelo import aio, batteries
from tupelo.aio import batteries as awaited


def programs() -> list:
    """Each program of each of these pages, with the text block that follows it."""
    found = []
    for page in sorted(ALL_PRINT):
        text = (DOCS.parent / page).read_text("utf-8")
        for number, rest in enumerate(text.split("```python\n")[1:], 1):
            program, _, below = rest.partition("```\n")
            shown = re.match(r"\n```text\n(.*?)```", below, re.DOTALL)
            name = f"{page.removeprefix('docs/')}-{number}"
            found.append(pytest.param(program, shown and shown[1], id=name))
    return found


@pytest.mark.parametrize(("program", "shown"), programs())
def test_a_program_prints_what_stands_below_it(own, program, shown, tmp_path):
    assert shown is not None, "no block of text follows the program"
    # One with a name of its own is imported by workers.
    named = re.match(r"# (\w+\.py)\n", program)
    name = named[1] if named else "program.py"
    (tmp_path / name).write_text(own(program), encoding="utf-8")
    with workers_of(name, tmp_path):
        assert run(tmp_path / name, tmp_path) == shown


@pytest.mark.parametrize("page", sorted(ALL_PRINT))
def test_the_pages_have_programs(page):
    assert PROGRAMS_OF[page]


@pytest.mark.parametrize(
    ("page", "module", "names"),
    [
        ("tupelo", "tupelo", ts.__all__),
        (
            "aio",
            "tupelo.aio",
            [name for name in aio.__all__ if getattr(aio, name) is not getattr(ts, name, None)],
        ),
        ("batteries", "tupelo.batteries", batteries.__all__),
    ],
)
def test_the_reference_has_every_public_name(page, module, names):
    text = (DOCS / "reference" / f"{page}.md").read_text("utf-8")
    assert {f"{module}.{name}" for name in names} <= set(
        re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    )


def test_the_asyncio_batteries_have_the_same_names_as_the_page_says():
    assert sorted(awaited.__all__) == sorted(batteries.__all__)
