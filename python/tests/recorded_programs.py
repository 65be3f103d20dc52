"""Programs that are recorded, and what is in their records."""

import json
import subprocess
import sys

RECORD = [sys.executable, "-m", "tupelo.record", "--out"]


def run(words, **options):
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=False, timeout=120, **options
    )


def lines_of(tmp_path, url, text):
    """Record a program; its run, and its lines."""
    program, out = tmp_path / "program.py", tmp_path / "run.jsonl"
    program.write_text(text)
    done = run([*RECORD, out, "--", sys.executable, "-Werror", program, url])
    assert done.returncode == 0, done.stderr
    return done, [json.loads(line) for line in out.read_text().splitlines()]


def words(lines, verb, key="tuple"):
    return [line[key] for line in lines if line["verb"] == verb]
