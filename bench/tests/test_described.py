"""What a record says of the machine, of Tupelo and of the adapters."""

import subprocess
from dataclasses import replace

import pytest
from records import MACHINE, run_of

from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.lines import adapter_lines
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.harness import machine
from tupelo_bench.presentation.tables import machine as described


def test_a_record_has_the_clock_and_the_cache_of_the_processors_where_the_kernel_tells_them():
    of = machine.describe()
    assert {"mhz", "cache", "governor"} <= set(of)
    run = replace(run_of(), machine={**MACHINE, "mhz": "2445.4", "cache": "512 KB"})
    assert described(run).rows[0] == (
        "processor", "abacus, 2 processors, 2445.4 MHz, 512 KB of cache",
    )  # fmt: skip
    older = described(run_of()).rows[0]
    assert older == ("processor", "abacus, 2 processors")


def test_a_record_has_the_size_of_the_engine_as_it_is_linked_into_a_program():
    size = machine.versions()["size of Tupelo's extension"]
    assert size.endswith(" MiB")
    assert float(size.split()[0]) > 0


def test_the_results_that_a_sitting_writes_do_not_make_the_version_dirty(tmp_path, monkeypatch):
    def git(*words):
        who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
        command = ("git", "-C", tmp_path, *who, *words)
        subprocess.run(command, check=True, capture_output=True)

    code, results = tmp_path / "python" / "__init__.py", tmp_path / "docs" / "results" / "run.json"
    for file in (code, results):
        file.parent.mkdir(parents=True)
        file.write_text("one")
    git("init")
    git("add", ".")
    git("commit", "--message", "all")
    monkeypatch.setattr(machine.tupelo, "__file__", str(code))
    results.write_text("two")
    assert "-dirty" not in machine.versions()["tupelo"]
    code.write_text("two")
    assert machine.versions()["tupelo"].endswith("-dirty)")


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_adapter_has_lines(peer):
    assert 10 < adapter_lines(peer) < 1_000


def test_the_lines_of_an_adapter_are_those_of_all_its_files_without_what_says_nothing(
    tmp_path, monkeypatch
):
    assert adapter_lines(JavaSpaces) > adapter_lines(Queue)
    module = tmp_path / "adapter.py"
    module.write_text('"""What it is."""\n\n# why\nx = 1\n\n\ndef f():\n    return x\n')
    monkeypatch.setattr("inspect.getfile", lambda _: str(module))
    assert adapter_lines(Queue) == 3
    package = tmp_path / "system"
    (package / "java").mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n")
    (package / "java" / "Server.java").write_text("// why\nclass Server {\n}\n")
    (package / "java" / "pom.xml").write_text("<project/>\n")
    monkeypatch.setattr("inspect.getfile", lambda _: str(package / "__init__.py"))
    assert adapter_lines(JavaSpaces) == 3
