"""The answers to the literature: what a record says of a claim follows from its repeats."""

from dataclasses import replace

import pytest
from records import mem, run_of

from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.experiments.warming import STEADY
from tupelo_bench.harness.record import Measure, Remark
from tupelo_bench.report.answers import answers
from tupelo_bench.report.answers.claim import as_long, at_most, in_order, paired, valued
from tupelo_bench.report.faster import comparisons, corrected, faster_peers, wins_and_losses
from tupelo_bench.report.page import page as html_page
from tupelo_bench.report.results import markdown
from tupelo_bench.report.short import in_short

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
        ([pair(1.0, 1.0)] * 3, "not shown"),  # no difference is no reverse
        ([pair(1.0, 1.0)] * 2 + [pair(2.0, 1.0)], "not shown"),  # one may do so by chance
        ([pair(1.0, 1.0)] * 2 + [pair(1.0, 2.0)], "not shown"),
        ([pair(1.0, 1.0)] * 3 + [pair(1.0, 2.0)] * 2, "in part"),
        ([pair(1.0, 1.0)] * 3 + [pair(2.0, 1.0)] * 2, "refuted"),
        ([pair(2.0, 1.0)], "refuted"),
        ([pair(2.0, 1.0)] * 2 + [pair(1.0, 2.0)], "refuted"),
        ([pair(1.0, 2.0, repeats=3)], "too little to tell"),
        ([], "not tested"),
        ([pair(1.0, 2.0, "redis")], "not tested"),  # the verdict is on Tupelo's cells
    ],
)
def test_a_claim_is_judged_by_the_test_of_its_cells(pairs, word):
    assert in_order("It is so.", "LINDA", pairs).verdict == word


def test_few_cells_of_many_tell_too_little():
    pairs = [pair(1.0, 2.0)] * 3
    assert in_order("It is so.", "LINDA", pairs, cells=6).verdict == "confirmed"
    few = in_order("It is so.", "LINDA", pairs, cells=7)
    assert few.verdict == "too little to tell"
    assert few.evidence.endswith("(2.00 times); there are 7 cells of it")


def test_a_claim_that_two_are_alike_is_refuted_by_a_difference_to_either_side():
    for less, more, word in (
        (1.0, 1.0, "confirmed"), (1.0, 1.05, "confirmed"),  # a difference within the limit
        (1.0, 2.0, "refuted"), (2.0, 1.0, "refuted"),
    ):  # fmt: skip
        assert as_long("Alike.", "LINDA", [pair(less, more)]).verdict == word


def test_that_the_test_tells_no_difference_does_not_make_two_alike():
    """Repeats that are far apart, or few, would confirm it of anything."""
    one, other = (
        Measure("cases", "tupelo-shm", CELL, "total", "s", samples)
        for samples in ([1.0, 3.0, 1.2, 2.8, 2.0], [1.1, 2.9, 1.3, 3.1, 2.1])
    )
    assert as_long("Alike.", "LINDA", [(one, other)]).verdict == "too little to tell"
    assert as_long("Alike.", "LINDA", [pair(1.0, 1.0, repeats=3)]).verdict == "too little to tell"


def test_the_others_stand_beside_ours_with_their_ratios():
    found = in_order("It is so.", "LINDA", [pair(1.0, 2.0), pair(2.0, 1.0, "redis")])
    assert found.evidence == (
        "Tupelo: in 1 of 1 cells (2.00 times); the others: in 0 of 1 cells, the reverse in 1"
        " (0.50 times)"
    )


def test_a_bound_and_a_range_are_judged_too():
    assert at_most("", "", [pair(1.0, 1.0)], 2.0).verdict == "confirmed"
    assert at_most("", "", [pair(3.0, 1.0)], 2.0).verdict == "refuted"
    # So near to the limit nobody can tell: that is no refutation.
    assert at_most("", "", [pair(2.0, 1.0)], 2.0).verdict == "too little to tell"
    found = at_most("", "", [pair(1.0, 4.0), pair(8.0, 1.0, "redis")], 2.0, note="on two")
    assert found.verdict == "confirmed"
    assert found.evidence == (
        "Tupelo: in 1 of 1 cells (0.25 times); the others: in 0 of 1 cells, the reverse in 1"
        " (8.00 times); on two"
    )
    assert valued("", "", [measure("tupelo-shm", 9.0)], 8, 14).verdict == "confirmed"
    assert valued("", "", [measure("tupelo-shm", 2.0)], 8, 14).verdict == "refuted"
    assert valued("", "", [measure("redis", 9.0)], 8, 14).verdict == "not tested"
    assert valued("", "", [measure("redis", 9.0)], 8, 14, of="redis").verdict == "confirmed"


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
    assert heads[:5] == [
        "## In short",
        "## Answers",
        "## Where Tupelo loses",
        "## Where Tupelo wins",
        "## The run",
    ]
    (row,) = [line for line in page.splitlines() if "10 000 tuples is slower" in line]
    assert "| not shown |" in row
    assert "[figure](figures/mem-time-of-a-take-empty-space.svg)" in row
    html = html_page(run, EXPERIMENTS)
    parts = [html.index(f"<h2>{head[3:]}</h2>") for head in heads[:4]]
    assert parts == sorted(parts)
    quick = replace(run, quick=True)
    for text in (markdown(quick, EXPERIMENTS, figures), html_page(quick, EXPERIMENTS)):
        assert "Answers" not in text
        assert "In short" not in text


def test_in_short_the_best_of_the_others_stands_beside_ours():
    kinds = (("tupelo-shm", 1.0), ("redis", 50.0), ("sqlite", 0.5), ("javaspaces", 100.0),
             ("plain-dict", 0.1))  # fmt: skip
    run = run_of(*(mem(backend, "Integer", microseconds) for backend, microseconds in kinds))
    sentences, headlines = in_short(run, ["confirmed", "refuted", "confirmed"])
    assert headlines.rows == (
        (
            "a take of an integer",
            "1.00 µs",
            "SQLite: 502 ns, 0.50 x",
            "100 µs, 100 x",
            "0.50 to 0.50 x, 1 cells",
        ),
    )
    assert sentences[:2] == [
        "Of the 3 rows of claims of the literature below: 2 confirmed, 1 refuted.",
        (
            "Of 4 comparisons with another system, Tupelo is significantly better in 2, and the"
            " other in 2. In the remaining 0 the repeats can not tell them apart."
        ),
    ]
    lost = [Remark("mem", "rinda", CELL, "over budget", "not tried")]
    words = "5 cells were measured. There was no time for 1 more; they are named at the end."
    assert words in in_short(replace(run, remarks=lost), [])[0]


def test_a_ratio_that_the_repeats_do_not_show_is_marked_in_short():
    names = ("tupelo-shm", "redis", "sqlite")
    run = run_of(*(mem(name, "Integer", 1.0) for name in names))
    ((_, _, best, *_),) = in_short(run, [])[1].rows
    assert best == "Redis: 1.00 µs, ~1.00 x"


def test_more_is_better_of_a_throughput_in_short():
    cell = {"series": "all at once", "entry": "Null", "clients": 8}
    rates = (("tupelo-shm", 100.0), ("redis", 5.0), ("sqlite", 20.0))
    run = run_of(
        *(
            Measure("settle", name, cell, "throughput", "operations/s", [rate])
            for name, rate in rates
        )
    )
    ((_, ours, best, reference, everywhere),) = in_short(run, [])[1].rows
    assert (ours, best, reference, everywhere) == (
        "100 operations/s", "SQLite: 20.0 operations/s, ?5.00 x", "-", "5.00 to 5.00 x, 1 cells",
    )  # fmt: skip


def test_in_short_a_headline_has_the_least_and_the_greatest_ratio_of_its_program():
    cells = [{"case": "ocean", "size": 600, "workers": w, "search": "round robin"} for w in (5, 15)]
    run = run_of(
        *(Measure("cases", name, cell, "total", "s", [seconds] * 5)
          for cell, ours, theirs in ((cells[0], 1.0, 3.0), (cells[1], 2.0, 1.0))
          for name, seconds in (("tupelo-shm", ours), ("redis", theirs), ("sqlite", 9.0))),
    )  # fmt: skip
    ((what, *_, everywhere),) = in_short(run, [])[1].rows
    assert (what, everywhere) == ("ocean model, 600 x 600, 5 workers", "0.50 to 3.00 x, 2 cells")


def test_in_short_says_what_more_clients_add_and_what_was_still_compiled():
    cell = {"series": "all at once", "entry": "Null"}
    run = run_of(
        *(Measure("settle", "tupelo-shm", {**cell, "clients": clients}, "throughput",
                  "operations/s", [rate]) for clients, rate in ((1, 4e6), (8, 3e6), (22, 2e6))),
        Measure("mem", "javaspaces", {}, STEADY, "", [0.0, 0.5]),
    )  # fmt: skip
    sentences, _ = in_short(run, [])
    assert any(
        "One client of Tupelo does 4.00M operations a second, and 22 that" in each
        and "2.00M together" in each for each in sentences
    )  # fmt: skip
    assert any("75 % of them had not become steady" in each for each in sentences)


def test_every_claim_has_a_verdict_and_a_sentence():
    run = run_of(
        mem("tupelo-shm", "Null", 1.0), measure("tupelo-shm", 1.0),
        Measure("settle", "tupelo-shm", {}, "throughput", "operations/s", [1.0]),
        Measure("rpc", "tupelo-shm", {}, "round trip", "s", [1.0]),
        Measure("sort", "tupelo-shm", {}, "response time", "s", [1.0]),
    )  # fmt: skip
    rows = answers(run).rows
    words = {"confirmed", "refuted", "in part", "not shown", "too little to tell", "not tested"}
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
    assert row[2:4] == ("refuted", "wrong results in 1 of 2 cells")
    elsewhere = [Remark("rpc", "redis", {"bytes": 256}, "wrong result", "another answer")]
    (row,) = [
        row
        for row in answers(replace(run, remarks=elsewhere)).rows
        if "sequential program" in row[0]
    ]
    assert row[2:4] == ("confirmed", "wrong results in 0 of 1 cells")


def test_as_much_is_shown_of_what_is_won_as_of_what_is_lost():
    peers = [f"peer-{number}" for number in range(20)]
    run = run_of(
        measure("tupelo-shm", 1.0), measure("tupelo-shm", 1.0, workers=15),
        *(measure(peer, 2.0 + n) for n, peer in enumerate(peers)),
        *(measure(peer, 0.5, workers=15) for peer in peers[:7]),
    )  # fmt: skip
    wins, losses = wins_and_losses(run)
    assert len(wins.rows) == len(losses.rows) == 7
    assert wins.title == "Where Tupelo wins: the first 7 of 20 rows"
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
    won = [replace(m, backend="sqlite") if m.backend == "tupelo-shm" else m for m in run.measures]
    text, _ = faster_peers(run_of(*won, measure("tupelo-shm", 0.5)))
    assert "Of the 21 in which Tupelo is better by the test, 0 are so, too." in text


def test_round_trips_of_programs_in_another_language_stand_among_the_losses():
    cell = {"bytes": 256, "placement": "together"}
    ours = Measure("rpc", "tupelo-shm", cell, "round trip", "s", [2.0, 2.1, 2.2, 2.3])
    name = "round trip between native programs"
    theirs = Measure("rpc", "omniorb", cell, name, "s", [1.0, 1.1, 1.2, 1.3])
    _, losses = wins_and_losses(run_of(ours, theirs))
    assert [row[:4] for row in losses.rows] == [("rpc, round trip", "omniorb", "1", "1.87 x")]


def row_of(run, words):
    (row,) = [row for row in answers(run).rows if words in row[0]]
    return row


def matrix(seconds, rows, metric="total", search="round robin", case="matrix rows", **more):
    parameters = {"case": case, "size": 100, "workers": 5, **more}
    if case == "matrix rows":
        parameters |= {"rows": rows, "search": search}
    samples = [seconds * (1 + n / 1_000) for n in range(5)]
    return Measure("cases", "tupelo-shm", parameters, metric, "s", samples)


def test_the_success_factor_is_judged_where_it_is_to_help_and_where_it_is_not():
    """[LINDA], figure 20: it is good for B-1, and bad for uniform rows."""
    visits = "visited nodes"
    run = run_of(
        matrix(2.0, "B-1", visits, "success factor"), matrix(6.0, "B-1", visits),
        matrix(8.0, "uniform", visits, "success factor"), matrix(8.0, "uniform", visits),
    )  # fmt: skip
    assert row_of(run, "where most of what")[2] == "confirmed"
    assert row_of(run, "spread uniformly")[2] == "confirmed"
    assert row_of(run, "fewer spaces with B-1 than with uniform rows")[2] == "confirmed"
    helped = run_of(*run.measures[:2], matrix(2.0, "uniform", visits, "success factor"),
                    run.measures[3])  # fmt: skip
    assert row_of(helped, "spread uniformly")[2] == "refuted"
    assert row_of(helped, "fewer spaces with B-1 than with uniform rows")[2] == "not shown"


def test_b_1_is_judged_against_uniform_rows_in_the_program_of_the_paper_alone():
    summed = [
        replace(m, parameters={"case": "matrix rows, summed locally", "size": 100, "workers": 5,
                               "rows": rows})
        for m, rows in ((matrix(1.0, "B-1"), "B-1"), (matrix(9.0, "uniform"), "uniform"))
    ]  # fmt: skip
    assert row_of(run_of(*summed), "(B-1) than with uniform rows")[2] == "not tested"
    run = run_of(matrix(9.0, "B-1"), matrix(1.0, "uniform"), *summed)
    assert row_of(run, "(B-1) than with uniform rows")[2] == "refuted"


def test_blocks_of_both_sizes_are_judged_against_rows():
    run = run_of(
        matrix(2.0, "uniform"), matrix(1.0, "", case="matrix blocks", block=10),
        matrix(4.0, "", case="matrix blocks", block=5),
    )  # fmt: skip
    assert row_of(run, "By blocks of 10 x 10")[2] == "confirmed"
    assert row_of(run, "By blocks of 5 x 5")[2] == "refuted"


def test_times_with_fifteen_workers_stand_beside_the_number_of_processors():
    run = run_of(*(measure("tupelo-shm", seconds, workers=workers)
                   for workers, seconds in ((1, 1.0), (5, 1.0), (15, 1.2))))  # fmt: skip
    row = row_of(run, "With 15 workers no program is faster than with 5")
    assert row[2] == "confirmed"
    assert row[3].endswith("15 workers share 2 processors here")
    writing = {"case": "password", "key": "second"}
    run = run_of(*(measure("tupelo-shm", seconds, 5, "local writing", workers=workers, **writing)
                   for workers, seconds in ((1, 1.0), (15, 3.0))))  # fmt: skip
    row = row_of(run, "Local writing takes no longer with 15 workers")
    assert row[2] == "refuted"
    assert row[3].endswith("(3.00 times); 15 workers share 2 processors here")


def test_a_knee_is_judged_of_the_system_that_the_claim_is_of_and_of_ours():
    cell = {"series": "all at once", "entry": "Null"}
    run = run_of(
        *(Measure("settle", each, cell, "throughput", "operations/s", [1.0])
          for each in ("javaspaces", "tupelo-shm")),
        Measure("settle", "javaspaces", cell, "knee", "clients", [8.0], derived=True),
        Measure("settle", "javaspaces", cell, "knee without the last point", "clients", [8.0],
                derived=True),
    )  # fmt: skip
    assert row_of(run, "knee of a space (javaspaces)")[2:4] == (
        "confirmed", "javaspaces 8.00; clients at the knee",
    )  # fmt: skip
    ours = row_of(run, "knee of a space (tupelo-shm)")
    assert ours[2:4] == ("refuted", "tupelo-shm has no knee within its clients")
    few = Measure("settle", "javaspaces", cell, "points of the knee", "", [2.0], derived=True)
    row = row_of(replace(run, measures=[*run.measures, few]), "knee of a space (javaspaces)")
    assert row[2:4] == ("too little to tell", "javaspaces has 2 points of its curve")
    row = row_of(run_of(*run.measures[:-1]), "knee of a space (javaspaces)")
    assert row[2:4] == (
        "too little to tell",
        "the knee of javaspaces rests on its last point alone",
    )


def test_a_space_is_beside_the_best_plain_structure_at_every_fill_by_puts_and_takes():
    run = run_of(
        *(mem(backend, "Integer", microseconds, fill=fill, metric=metric)
          for metric in ("put", "take") for fill in (0, 10_000)
          for backend, microseconds in (
              ("tupelo-shm", 1.0), ("plain-list", 9.0 if fill else 0.6), ("plain-dict", 0.7),
          )),
    )  # fmt: skip
    for verb in ("put", "take"):
        row = row_of(run, f"A {verb} takes at most twice")
        assert row[2:4] == ("confirmed", "Tupelo: in 2 of 2 cells (1.43 to 1.67 times)")


def test_a_remote_read_is_set_beside_the_printed_times():
    cell = {"case": "ocean", "size": 1_200, "search": "round robin"}
    for seconds, word in ((50e-6, "confirmed"), (80e-6, "refuted")):
        run = run_of(measure("tupelo-shm", seconds, metric="remote reading", **cell))
        row = row_of(run, "as GigaSpaces'")
        assert row[2] == word
        assert row[3].endswith(" µs; 15 workers share 2 processors here")


def test_with_one_worker_it_is_the_median_search_that_is_as_long_as_a_read():
    alone = {"case": "password", "key": "second", "workers": 1}
    run = run_of(
        measure("tupelo-shm", 1e-6, metric="local reading by a key", **alone),
        measure("tupelo-shm", 1e-6, metric="search median", **alone),
        measure("tupelo-shm", 1e-3, metric="search", **alone),
    )
    assert row_of(run, "a search takes as long as a local read")[2] == "confirmed"


def test_every_workload_is_set_beside_the_smallest():
    def aged(by, seconds):
        cell = {"series": "paper aged", "entry": "Null", "clients": 8, "aged by": by}
        samples = [seconds * (1 + n / 1_000) for n in range(5)]
        return Measure("settle", "tupelo-shm", cell, "response time", "s", samples)

    row = row_of(
        run_of(aged(1_000, 1.0), aged(3_000, 1.2), aged(6_000, 1.5)), "The more operations"
    )
    assert "here up to 6 000, against 1 000; there up to 12 000" in row[0]
    assert row[2:4] == ("confirmed", "Tupelo: in 2 of 2 cells (1.20 to 1.50 times)")


def test_a_call_is_beside_the_orb_at_both_sizes_of_the_paper():
    """[LIMBO]: L²imbo 1.9 and 4.4 ms, COOL ORB 2.6 and 3.8 ms."""
    found = run_of(*(
        Measure("rpc", backend, {"bytes": f"{size} each way", "placement": "apart"}, metric, "s",
                [seconds * (1 + n / 1_000) for n in range(5)])
        for backend, metric, times in (
            ("tupelo-shm", "round trip", (1.9, 4.4)),
            ("omniorb", "round trip between native programs", (2.6, 3.8)),
        )
        for size, seconds in zip((100, 1000), times, strict=True)
    ))  # fmt: skip
    assert row_of(found, "A call of 100 bytes")[2] == "confirmed"
    assert row_of(found, "A call of 1 000 bytes")[2] == "confirmed"
