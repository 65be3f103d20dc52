"""Tupelo in shared memory and behind sockets, in the programs that compare transports."""

import pytest
from records import run_of

from tupelo_bench.backends.served import FileSpace, ServedSpace, TcpSpace
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.experiments.cases import Cases
from tupelo_bench.experiments.cases.figures import BY_TRANSPORT, figures
from tupelo_bench.harness.record import Measure
from tupelo_bench.report.answers import answers
from tupelo_bench.runner import Options


def cells(peer, *, quick=False):
    return [job.parameters for job in Cases().jobs(peer, Options(quick=quick))]


@pytest.mark.parametrize("peer", [ServedSpace, TcpSpace])
def test_a_server_of_ours_runs_the_two_programs_of_the_paper_as_all_others_do(peer):
    """[LINDA], figures 27 to 30: sorting of 10^7 numbers, and the matrix of order 100."""
    found = cells(peer)
    assert {each["case"] for each in found} == {"sorting", "matrix rows"}
    assert all(each in cells(SharedSpace) for each in found)
    assert {(each["size"], each.get("rows")) for each in found} == {
        (10_000_000, None), (100, "uniform"),
    }  # fmt: skip
    assert {each["workers"] for each in found} == {1, 5, 10, 15}
    assert {each["case"] for each in cells(peer, quick=True)} == {"sorting", "matrix rows"}
    assert peer in Cases().peers([ServedSpace, TcpSpace, FileSpace])


def measured(backend, factor):
    for of in (
        {"case": "sorting", "size": 10_000_000},
        {"case": "matrix rows", "size": 100, "rows": "uniform", "search": "round robin"},
    ):
        for workers in (1, 5):
            for metric in ("total", "remote reading"):
                samples = [factor * (1 + n / 1_000) for n in range(5)]
                yield Measure("cases", backend, {**of, "workers": workers}, metric, "s", samples)


def test_figures_27_to_30_have_a_line_per_transport_and_no_other_system():
    run = run_of(*measured("tupelo-shm", 1.0), *measured("tupelo-unix", 3.0),
                 *measured("redis", 9.0))  # fmt: skip
    found = [each for each in figures(run) if "by transport" in each.title]
    assert len(found) == len(BY_TRANSPORT) == 4
    for figure, (number, *_) in zip(found, BY_TRANSPORT, strict=True):
        assert [series.label for series in figure.series] == ["tupelo-shm", "tupelo-unix"]
        assert f"figure {number} of LINDA" in figure.note
        assert not figure.empty
    alone = [f for f in figures(run_of(*measured("tupelo-shm", 1.0))) if "transport" in f.title]
    assert all(figure.empty for figure in alone)


def test_a_transport_is_judged_by_the_remote_reads_of_the_same_program():
    run = run_of(*measured("tupelo-shm", 1.0), *measured("tupelo-unix", 3.0))
    rows = {row[0]: row for row in answers(run).rows if "through a transport" in row[0]}
    by = {name: next(row for claim, row in rows.items() if name in claim) for name in
          ("tupelo-unix", "tupelo-tcp")}  # fmt: skip
    assert by["tupelo-unix"][2:4] == ("confirmed", "Tupelo: in 4 of 4 cells (3.00 times)")
    assert by["tupelo-tcp"][2] == "not tested"
