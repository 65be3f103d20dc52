"""Every program in examples/, the README and docs/python.md does what it says."""

import doctest
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from console import INSTALLED
from serving import server

import tupelo as ts

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
RESULTS = {
    "barrier": "3 processes went through 5 rounds together",
    "pipeline": "95 primes below 500, the largest is 499",
    "request_reply": "300 calls, every answer went to its caller",
    "semaphore": "6 processes shared 2 permits, never more at once",
    "work_queue": "the sum of 1000 squares is 332833500",
}


def run(program: Path, folder: Path) -> str:
    finished = subprocess.run(
        [sys.executable, program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_its_result(example, tmp_path):
    assert run(example, tmp_path) == RESULTS[example.stem] + "\n"


def test_every_result_has_its_example():
    assert {path.stem for path in EXAMPLES} == set(RESULTS)


DOCS = Path(__file__).parents[2] / "docs"


PAGES = sorted(page for page in DOCS.rglob("*.md") if ">>> " in page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_tells_the_truth(page, monkeypatch):
    # The page is the program, whatever runs the tests.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(page), raising=False)
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_pages_with_examples_are_found():
    assert {"python", "batteries", "claim", "asyncio"} <= {page.stem for page in PAGES}


ALL_PRINT = {
    "docs/coming-from/celery.md",
    "docs/coming-from/javaspaces.md",
    "docs/coming-from/multiprocessing.md",
    "docs/coming-from/redis.md",
    "docs/cookbook.md",
    "docs/how-to/teach.md",
    "docs/index.md",
    "docs/survey.md",
}
"""The pages that show below each program what it prints: test_examples_pages.py."""

PROGRAMS_OF = {
    page.relative_to(DOCS.parent).as_posix(): [block.split("```")[0] for block in blocks]
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    if (blocks := page.read_text("utf-8").split("```python\n")[1:])
}
"""Of each page the blocks that are Python."""


def test_every_program_of_a_page_is_run_by_a_test_below():
    assert {page: len(programs) for page, programs in PROGRAMS_OF.items()} == {
        "README.md": 2,
        "docs/how-to/add-a-backend.md": 2,  # beside the suite: bench/tests/test_page.py
        "docs/how-to/claim.md": 1,
        "docs/how-to/durable.md": 4,
        "docs/how-to/server.md": 1,
        "docs/how-to/workers.md": 2,
        "docs/tutorials/worker-pool.md": len(PROGRAMS),
    } | {page: len(programs) for page, programs in PROGRAMS_OF.items() if page in ALL_PRINT}
    # One that is written otherwise would not be found.
    fences = {
        line.strip()
        for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
        for line in page.read_text("utf-8").splitlines()
        if line.lstrip().startswith(("```", "~~~"))
    }
    assert fences == {"```python", "```text", "```toml", "```"}  # a configuration is no program


def test_the_program_of_the_page_on_claims_survives_the_kill(own, tmp_path):
    page = (DOCS / "how-to" / "claim.md").read_text(encoding="utf-8")
    (program,) = PROGRAMS_OF["docs/how-to/claim.md"]
    (tmp_path / "squares.py").write_text(own(program), encoding="utf-8")
    printed = run(tmp_path / "squares.py", tmp_path)
    assert printed == "one worker was killed, 100 squares are there\n"
    assert f"It prints `{printed.strip()}`" in page


def test_the_program_of_the_page_on_servers_has_what_it_put(tmp_path):
    (program,) = PROGRAMS_OF["docs/how-to/server.md"]
    socket = tmp_path / "tupelo.sock"
    of_test = program.replace("/tmp/tupelo.sock", str(socket))  # noqa: S108 - of the page
    (tmp_path / "jobs.py").write_text(of_test, encoding="utf-8")
    with server(socket):
        assert run(tmp_path / "jobs.py", tmp_path) == "('job', 7)\n"


def test_the_programs_of_the_page_on_files_keep_what_they_put(tmp_path):
    url, shop = f"file://{tmp_path / 'jobs.tupelo'}", f"file://{tmp_path / 'shop'}"
    printed = []
    for program in PROGRAMS_OF["docs/how-to/durable.md"]:
        of_test = program.replace("file:///tmp/jobs.tupelo", url).replace("file:///tmp/shop", shop)
        alone = "" if of_test.startswith("import") else "import tupelo as ts\n"
        (tmp_path / "jobs.py").write_text(alone + of_test, encoding="utf-8")
        printed.append(run(tmp_path / "jobs.py", tmp_path))
    assert printed == ["('done', 8)\n", "", "('order', 18)\n", "1\n"]
    with ts.connect(url) as space:
        left = [("seen", "robots.txt"), ("shipped", 17), ("order", 18)]
        assert sorted(space.take_all(ts.REST), key=str) == sorted(left, key=str)
    ts.remove(url)
    ts.remove(f"{shop}.tupelo")


def test_the_program_of_the_readme_runs_as_printed(own, tmp_path):
    program, _ = PROGRAMS_OF["README.md"]
    (tmp_path / "squares.py").write_text(own(program), encoding="utf-8")
    expected = program.rsplit("# ", 1)[1].strip()
    assert run(tmp_path / "squares.py", tmp_path) == f"{expected}\n"


def test_the_templates_of_the_readme_take_what_they_say():
    _, program = PROGRAMS_OF["README.md"]
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - our own page
    assert names["space"].count(ts.REST) == 0
    ts.remove("mem://templates")


PROGRAMS = {
    program.split("\n", 1)[0].removeprefix("# "): (program, page.partition("```text\n")[2])
    for page in (DOCS / "tutorials" / "worker-pool.md").read_text("utf-8").split("```python\n")[1:]
    for program in [page.split("```")[0]]
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_tutorial_prints_what_stands_below_it(own, name, tmp_path):
    program, rest = PROGRAMS[name]
    (tmp_path / name).write_text(own(program), encoding="utf-8")
    with workers_of(name, tmp_path):
        assert run(tmp_path / name, tmp_path) == rest.split("```")[0]


def test_the_programs_of_the_page_on_workers_run(own, tmp_path):
    programs = PROGRAMS_OF["docs/how-to/workers.md"]
    for name, program in zip(("film.py", "caller.py"), programs, strict=True):
        (tmp_path / name).write_text(own(program), encoding="utf-8")
    with workers_of("film.py", tmp_path):
        assert run(tmp_path / "caller.py", tmp_path) == "sea 7\nsea 7\n"


@contextmanager
def workers_of(name, folder):
    """Start what the tutorial has started in another terminal."""
    if name != "film.py":
        yield
        return
    command = [INSTALLED, "worker", "film:render"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as service:
        yield
        service.terminate()
