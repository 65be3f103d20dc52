"""Temporary folders of a run, and what a run that was killed has left."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tupelo_bench.backends.sqlite import DurableSQLite
from tupelo_bench.harness import folders
from tupelo_bench.harness.folders import file_system, remove_left_behind, temporary_folder

KILLED = """
import os, signal
from tupelo_bench.harness.folders import temporary_folder
with temporary_folder("redis") as folder:
    (folder / "data").write_text("a server's")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where all folders are made, also by programs that are started."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_of_a_killed_run_is_removed_by_the_next(place):
    killed = subprocess.run([sys.executable, "-c", KILLED], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert [(each / "data").read_text() for each in place.iterdir()] == ["a server's"]
    remove_left_behind()
    assert not list(place.iterdir())


def test_the_folder_of_a_run_that_lives_stays_and_so_does_what_is_no_runs(place):
    results = place / "tupelo-bench-results"
    results.mkdir()
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    link = place / f"{folders.PREFIX}link{folders.SUFFIX}"
    link.symlink_to(elsewhere)
    with temporary_folder("redis") as folder:
        remove_left_behind()
        assert set(place.iterdir()) == {folder, results, elsewhere, link}
    assert set(place.iterdir()) == {results, elsewhere, link}


def test_a_folder_that_another_run_removes_before_it_is_locked_is_made_again(place, monkeypatch):
    made = []
    lock = folders.os.open

    def comes_late(path, flags):
        made.append(path)
        if len(made) == 1:
            monkeypatch.setattr(folders.os, "open", lock)
            remove_left_behind()
        return lock(path, flags)

    monkeypatch.setattr(folders.os, "open", comes_late)
    with temporary_folder("redis") as folder:
        assert [str(each) for each in place.iterdir()] == [str(folder)]
        assert made != [str(folder)]
    assert not list(place.iterdir())


def test_the_file_system_of_a_folder_is_known(place):
    assert file_system(Path("/proc/self/fd")) == "proc"
    assert file_system(place / "not there yet") == file_system(place) != ""


def test_what_is_to_survive_is_not_measured_in_memory(place, monkeypatch):
    monkeypatch.setattr("tupelo_bench.backends.sqlite.file_system", lambda _: "tmpfs")
    assert DurableSQLite.missing() == f"{place} is in memory (tmpfs)"
    monkeypatch.setattr("tupelo_bench.backends.sqlite.file_system", lambda _: "ext4")
    assert DurableSQLite.missing() is None
