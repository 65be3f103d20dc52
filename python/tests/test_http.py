"""HTTP, as docs/http.md shows it; all of its verbs are tested beside the server."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from serving import server

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text("utf-8")
LINES = re.findall(r"^ {4}((?:\w+=\$\()?curl .*)$", PAGE, re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the lines of the page call curl")
def test_the_lines_of_the_page_do_what_it_says():
    with server("http://127.0.0.1:0") as process:
        address = process.url.removesuffix("/v1/spaces/NAME")
        printed = [
            subprocess.run(
                ["sh", "-ec", line.replace("http://127.0.0.1:7680", address)],  # noqa: S607
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for line in LINES
        ]
    put, taken, _, done, committed, scanned, spaces, figures = printed
    for answer in (put, taken, done, *committed.splitlines()):
        assert f"`{answer.strip()}`" in PAGE
    assert scanned == '{"tuple":["done",8]}\n'
    assert json.loads(spaces) == {"spaces": ["jobs"]}
    assert 'tupelo_shape_takes_total{space="jobs",shape="(str, int)"} 2' in figures


def test_every_verb_of_the_description_is_on_the_page():
    text = Path(__file__).parents[2] / "crates" / "server" / "src" / "http" / "openapi.json"
    for path in json.loads(text.read_text("utf-8"))["paths"]:
        name = path.replace("{space}", "NAME").removeprefix("/v1/spaces/NAME/")
        # In a transaction they are called as outside of one.
        name = re.sub(r"(?<={transaction}/)(?!commit|abort)\w+", "VERB", name)
        assert f"`{name}`" in PAGE or f"{name}`" in PAGE, path
