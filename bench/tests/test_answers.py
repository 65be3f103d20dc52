"""The answers to the literature: what a record says of a claim follows from its repeats."""

from dataclasses import replace

import pytest
from records import mem, run_of

from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.harness.record import Measure, Remark
from tupelo_bench.report.answers import answers
from tupelo_bench.report.answers.claim import at_most, in_order, paired, valued
from tupelo_bench.report.faster import comparisons, corrected, faster_peers, wins_and_losses
from tupelo_bench.report.results import markdown

CELL = {"case": "sorting", "size": 7, "workers": 5}


def measure(backend, seconds, repeats=5, metric="total", **parameters):
    samples = [seconds * (1 + n / 1_000) for n in range(repeats)]
    return Measure("cases", backend, {**CELL, **parameters}, metric, "s", samples)


def pair(less, more, backend="tupelo-shm", repeats=5):
    return measure(backend, less, repeats), measure(backend, more, repeats)


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([pair(1.0, 2.0)] * 3, "confirmed"),
        ([pair(1.0, 2.0)] * 2 + [pair(1.0, 1.0)], "confirmed"),  # one that is alike is no reverse
        ([pair(1.0, 2.0)] * 2 + [pair(2.0, 1.0)], "in part"),
        ([pair(1.0, 1.0)] * 3, "refuted"),
        ([pair(2.0, 1.0)] * 2 + [pair(1.0, 2.0)], "refuted"),
        ([pair(1.0, 2.0, repeats=3)], "too little to tell"),
        ([], "not tested"),
        ([pair(1.0, 2.0, "redis")], "not tested"),  # the verdict is on Tupelo's cells
    ],
)
def test_a_claim_is_judged_by_the_test_of_its_cells(pairs, word):
    assert in_order("It is so.", "LINDA", pairs).verdict == word


def test_a_claim_that_two_are_alike_is_refuted_by_a_difference_to_either_side():
    for less, more, word in ((1.0, 1.0, "confirmed"), (1.0, 2.0, "refuted"), (2.0, 1.0, "refuted")):
        assert in_order("Alike.", "LINDA", [pair(less, more)], equal=True).verdict == word


def test_the_others_stand_beside_ours_with_their_ratios():
    found = in_order("It is so.", "LINDA", [pair(1.0, 2.0), pair(2.0, 1.0, "redis")])
    assert found.evidence == (
        "Tupelo: in 1 of 1 cells (2.00 times); the others: in 0 of 1 cells, the reverse in 1"
        " (0.50 times)"
    )


def test_a_bound_and_a_range_are_judged_too():
    assert at_most("", "", [pair(1.0, 1.0)], 2.0).verdict == "confirmed"
    assert at_most("", "", [pair(3.0, 1.0)], 2.0).verdict == "refuted"
    assert valued("", "", [measure("tupelo-shm", 9.0)], 8, 14).verdict == "confirmed"
    assert valued("", "", [measure("tupelo-shm", 2.0)], 8, 14).verdict == "refuted"
    assert valued("", "", [measure("redis", 9.0)], 8, 14).verdict == "not tested"


def test_cells_are_paired_where_they_differ_in_nothing_else():
    run = run_of(
        measure("redis", 1.0, workers=15), measure("redis", 2.0, workers=1),
        measure("redis", 3.0, workers=1, size=9), measure("sqlite", 4.0, workers=1),
    )  # fmt: skip
    (found,) = paired(run, "cases", "total", {"workers": 15}, {"workers": 1})
    assert [m.summary.mean for m in found] == [pytest.approx(1.002), pytest.approx(2.004)]


def test_the_page_begins_with_the_answers_and_then_with_what_is_lost_and_won():
    run = run_of(
        *(mem(backend, "Integer", 1.0 * factor, fill=fill)
          for backend, factor in (("tupelo-shm", 1.0), ("redis", 50.0), ("sqlite", 0.5))
          for fill in (0, 10_000)),
    )  # fmt: skip
    figures = [("A take", "figures/mem-time-of-a-take-empty-space.svg")]
    page = markdown(run, EXPERIMENTS, figures)
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads[:4] == [
        "## Answers",
        "## Where Tupelo loses",
        "## Where Tupelo wins",
        "## The run",
    ]
    (row,) = [line for line in page.splitlines() if "10 000 tuples is slower" in line]
    assert "| refuted |" in row
    assert "[figure](figures/mem-time-of-a-take-empty-space.svg)" in row
    assert "## Answers" not in markdown(replace(run, quick=True), EXPERIMENTS, figures)


def test_every_claim_has_a_verdict_and_a_sentence():
    run = run_of(
        mem("tupelo-shm", "Null", 1.0), measure("tupelo-shm", 1.0),
        Measure("settle", "tupelo-shm", {}, "throughput", "operations/s", [1.0]),
        Measure("rpc", "tupelo-shm", {}, "round trip", "s", [1.0]),
        Measure("sort", "tupelo-shm", {}, "response time", "s", [1.0]),
    )  # fmt: skip
    rows = answers(run).rows
    words = {"confirmed", "refuted", "in part", "too little to tell", "not tested"}
    assert {row[2] for row in rows} <= words
    assert all(row[0].endswith(".") and row[1] and row[3] for row in rows)
    assert {row[1].split(",")[0].split(";")[0] for row in rows} == {
        "SETTLE", "MEM", "LINDA", "LIMBO", "RPC",
    }  # fmt: skip


def test_a_wrong_result_refutes_that_all_systems_are_right():
    run = run_of(
        measure("tupelo-shm", 1.0),
        remarks=[Remark("cases", "redis", CELL, "wrong result", "the product is wrong")],
    )
    (row,) = [row for row in answers(run).rows if "sequential program" in row[0]]
    assert row[2:4] == ("refuted", "1 wrong results in 1 cells")


def test_as_much_is_shown_of_what_is_won_as_of_what_is_lost():
    peers = [f"peer-{number}" for number in range(20)]
    run = run_of(
        measure("tupelo-shm", 1.0), measure("tupelo-shm", 1.0, workers=15),
        *(measure(peer, 2.0 + n) for n, peer in enumerate(peers)),
        *(measure(peer, 0.5, workers=15) for peer in peers[:7]),
    )  # fmt: skip
    wins, losses = wins_and_losses(run)
    assert len(wins.rows) == len(losses.rows) == 7
    # Those with the greatest ratio come first.
    assert wins.rows[0][1:4] == ("peer-19", "1", "21.0 x")


def test_holms_correction_is_over_all_comparisons_of_an_experiment_and_the_effect_stands_beside():
    run = run_of(
        measure("tupelo-shm", 2.0),
        *(measure(f"peer-{number}", 1.0) for number in range(20)),
    )
    found = list(comparisons(run))
    # Five and five that do not overlap: p = 2 / 252; 20 times that is more than 0.05.
    assert {round(each.p, 4) for each in found} == {0.0079}
    assert min(corrected(found).values()) == pytest.approx(20 * 2 / 252)
    text, table = faster_peers(run)
    assert "in 20 significantly" in text
    assert "20 that were tested, 0 are significant also by Holm's correction" in text
    assert {row[-2:] for row in table.rows} == {("0.16", "1.00")}
