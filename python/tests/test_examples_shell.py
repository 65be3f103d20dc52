"""Every line of the README, docs/ and the pages of errors that calls `tupelo` runs.

Where a page says what a line prints, that is compared; of the others the exit code is.

Those of a page run one after the other, in the spaces that the page names, under other names: the
reader's own may be called so. What runs until it is ended, or for minutes, is named below, and why.
That all lines are understood is tested beside the command line itself.
"""

import os
import re
import subprocess
from contextlib import nullcontext
from itertools import chain
from pathlib import Path

import pytest
from console import INSTALLED
from serving import server
from test_examples import DOCS

import tupelo as ts

ERRORS = DOCS.parent / "crates" / "cli" / "errors"
SOURCES = [DOCS.parent / "README.md", *sorted(chain(DOCS.rglob("*.md"), ERRORS.glob("*.md")))]


def lines_of(page):
    """Return the lines of a page that call `tupelo`, without what is said about them beside."""
    # Lines of a program in a fence are none of a shell.
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    # Behind `while` stands a loop of them.
    indented = re.findall(r"^ {4}((?:tupelo|while) .*)$", text, re.MULTILINE)
    # A shell knows where a line ends that has a `#`; two spaces end the others.
    return [re.match(r"(?:'[^']*'|(?!  ).)*", line)[0] for line in indented]


PAGES = {page.relative_to(DOCS.parent).as_posix(): lines_of(page) for page in SOURCES}

FOR_EVER = "runs until it is ended"
FOR_MINUTES = "runs for minutes"

NOT_RUN = {
    "tupelo top": f"{FOR_EVER}; crates/cli/tests/all/top.rs",
    "tupelo top shm://jobs": f"{FOR_EVER}; crates/cli/tests/all/top.rs",
    "tupelo watch shm://jobs job ...": f"{FOR_EVER}; crates/cli/tests/all/watch.rs",
    "tupelo serve --socket tupelo.sock": f"{FOR_EVER}; test_server.py",
    "tupelo serve --listen unix:///tmp/tupelo.sock": (
        f"{FOR_EVER}; beside the other lines of its page"
    ),
    "tupelo serve --listen http://127.0.0.1:7680 --listen unix:///tmp/tupelo.sock": (
        f"{FOR_EVER}; test_http.py, beside the other lines of its page"
    ),
    "tupelo worker film:render": f"{FOR_EVER}; test_examples.py, by the program of the page",
    "tupelo worker film:render -n 4": f"{FOR_EVER}; test_worker.py",
    "while true; do tupelo take shm://jobs job :int _ --exec ./render.sh; done": (
        f"{FOR_EVER}; once, by the page on claims"
    ),
    "tupelo demo password": f"{FOR_MINUTES}; test_demo.py, in smaller sizes",
    "tupelo bench mem --quick": f"{FOR_MINUTES}; bench/tests/test_command.py, in smaller sizes",
    "tupelo bench mem --quick --vs NAME": "NAME is what the reader of the page has written",
    "tupelo bench all --quick --vs NAME --out /tmp/look": "the same",
}

CODES = {
    "tupelo doctor": {0, 1},  # it may find something to fix on this machine
    "tupelo doctor file:///tmp/jobs.tupelo": {0, 1},
    "tupelo rm shm://jobs": {2},  # it asks first, and there is nobody
}

# What somebody else has put by then.
GIVEN = {
    "tupelo take shm://jobs job :int --where 'f[1] > 9'": ("jobs", ("job", 10)),
    "tupelo take shm://jobs job _ --exec ./do.sh": ("jobs", ("job", "dog.png")),
    "tupelo take shm://jobs job :int _ --exec ./render.sh --max-attempts 3": (
        "jobs",
        ("job", 7, "cat.png"),
    ),
    "tupelo take shm://orders order :int :int :int --where 'f[2] < f[3]'": (
        "orders",
        ("order", 3, 8, 9),
    ),
    "tupelo read shm://jobs ... --all --json | tupelo put shm://copy -": ("jobs", ("left", 1)),
}

PRINTED = {
    "tupelo take 'unix:///tmp/tupelo.sock?space=jobs' job :int": '("job", 7)\n',
    "tupelo take file:///tmp/jobs.tupelo job :int _": '("job", 7, "cat.png")\n',
    "tupelo read shm://jobs job :int _": '("job", 7, "cat.png")\n',
    "tupelo take shm://jobs job :int _": '("job", 7, "cat.png")\n',
    "tupelo take shm://jobs job :int --where 'f[1] > 9'": '("job", 10)\n',
    "tupelo take shm://jobs job _ --exec ./do.sh": 'done: {"tuple":["job","dog.png"]}\n',
    "tupelo take shm://jobs job :int _ --exec ./render.sh --max-attempts 3": (
        'done: {"tuple":["job",7,"cat.png"]}\n'
    ),
    "tupelo take shm://orders order :int :int :int --where 'f[2] < f[3]'": '("order", 3, 8, 9)\n',
    "tupelo put shm://jobs job 7 cat.png": "",
    "tupelo dead shm://jobs": "",
    "tupelo requeue shm://jobs job :int _": "0 tuples are back in shm://jobs\n",
    "tupelo explain shm://jobs job :str _": (
        "nearest: there is 1 tuple (str, int, str); field 1 is int there, :str in the template\n"
    ),
    "tupelo record --out run.jsonl -- COMMAND": (
        "('page', 1)\n2 operations are in run.jsonl: see `tupelo check run.jsonl`\n"
    ),
    "tupelo check run.jsonl": "shm://jobs:\n  fine\n",
    "tupelo rm shm://jobs": (
        "tupelo: remove the space shm://jobs with 0 tuples?\n"
        "  Add --yes: there is no terminal to ask.\n"
    ),
    "tupelo read shm://jobs ... --all --json | tupelo put shm://copy -": "1 tuple put\n",
}

# Where the pages on servers and on files have them.
SOCKET = "/tmp/tupelo.sock"  # noqa: S108
FILE = "/tmp/jobs.tupelo"  # noqa: S108
SHOP = "/tmp/shop.tupelo"  # noqa: S108

# The files that are the reader's own; each script tells what it was given.
SCRIPT = "#!/bin/sh\necho done: $(cat)\n"
PROGRAM = """#!/bin/sh
exec python3 -c 'import tupelo
with tupelo.connect() as space:
    space.put("page", 1)
    print(space.take("page", int), flush=True)'
"""
FILES = {"do.sh": SCRIPT, "render.sh": SCRIPT, "COMMAND": PROGRAM}


def test_the_lines_for_a_shell_are_found():
    assert len(list(chain(*PAGES.values()))) > 40
    # One in a block of its own would not be.
    assert not [page for page in SOURCES if "```sh" in page.read_text("utf-8")]


def test_what_is_said_of_a_line_is_said_of_one_that_stands_somewhere():
    assert {*NOT_RUN, *CODES, *GIVEN, *PRINTED} <= set(chain(*PAGES.values()))


@pytest.mark.parametrize("page", [page for page, lines in PAGES.items() if {*lines} - {*NOT_RUN}])
def test_the_lines_for_a_shell_of_a_page_do_what_it_says(page, new_url, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    path = os.pathsep.join([str(INSTALLED.parent), str(tmp_path), os.environ["PATH"]])
    urls = {name: new_url("shm") for name in ("jobs", "orders", "copy")}
    environment = os.environ | {"PATH": path, "TUPELO_URL": urls["jobs"]}
    ts.connect(urls["jobs"]).close()
    socket = tmp_path / "tupelo.sock"
    with server(socket) if any("unix://" in line for line in PAGES[page]) else nullcontext():
        run_lines(page, urls, socket, environment)


def run_lines(page, urls, socket, environment):
    for line in PAGES[page]:
        if line in NOT_RUN:
            continue
        own = line
        for place in (SOCKET, FILE, SHOP):
            own = own.replace(place, str(socket.with_name(Path(place).name)))
        of_test = re.sub(r"shm://(\w+)", lambda m: urls[m[1]], own)
        if line in GIVEN:
            name, given = GIVEN[line]
            with ts.connect(urls[name]) as space:
                space.put(*given)
        ran = subprocess.run(
            # What waits in vain ends with 124, and with it all that it has started.
            ["timeout", "60", "sh", "-c", of_test],  # noqa: S607
            cwd=socket.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = ran.stdout
        for name, url in urls.items():
            printed = printed.replace(url, f"shm://{name}")
        assert ran.returncode in CODES.get(line, {0}), (line, printed)
        assert printed == PRINTED.get(line, printed), line
