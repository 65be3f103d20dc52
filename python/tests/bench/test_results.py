"""The results page: what it says follows from the record, also where that is not in our favour."""

import csv
from dataclasses import replace

import pytest

from tupelo.bench.backends.registry import PEERS
from tupelo.bench.experiments.everything import EXPERIMENTS, YARDSTICKS
from tupelo.bench.experiments.settle import Settle
from tupelo.bench.harness.record import Measure, Remark, Run
from tupelo.bench.harness.runner import Options
from tupelo.bench.report import drawing
from tupelo.bench.report.absent import ABSENT, absent
from tupelo.bench.report.deviations import deviations
from tupelo.bench.report.faster import faster_peers
from tupelo.bench.report.files import csv_text
from tupelo.bench.report.page import page as html_page
from tupelo.bench.report.questions import questions
from tupelo.bench.report.questions.question import NoSuchTableError
from tupelo.bench.report.results import markdown
from tupelo.bench.report.tables import tables
from tupelo.bench.report.targets import targets
from tupelo.bench.report.undrawn import undrawn

SMALL = ("Null", "Integer", "Char 32", "Double 32")
MACHINE = {
    "processor": "abacus", "processors": [0, 1], "virtual": False, "memory_bytes": 1 << 30,
    "kernel": "none", "load_1min": 0.0,
}  # fmt: skip


def run_of(*measures, remarks=()):
    return Run(
        ["tupelo", "bench"], "today", 1, quick=False, machine=MACHINE, versions={"redis": "7"},
        measures=list(measures), remarks=list(remarks), notes={"redis": "a socket | a list"},
        placements={"mem": ["apart: server on 1, clients on 0"]},
    )  # fmt: skip


def mem(backend, entry, microseconds, placement="apart", *, fill=0, metric="take"):
    parameters = {"entry": entry, "fill": fill, "placement": placement}
    samples = [microseconds * 1e-6 * (1 + n / 1_000) for n in range(10)]
    return Measure("mem", backend, parameters, metric, "s", samples)


def total(backend, seconds, coordination=0.0, **parameters):
    spread = [seconds * (1 + n / 1_000) for n in range(10)]
    return (
        Measure("cases", backend, parameters, "total", "s", spread),
        Measure("cases", backend, parameters, "coordination", "", [coordination]),
    )


def verdict(run, words):
    (row,) = [row for row in targets(run).rows if words in row[0]]
    return row


def test_a_peer_is_compared_at_its_better_placement():
    run = run_of(
        *(mem("tupelo-shm", entry, 1) for entry in SMALL),
        *(mem("redis", entry, 400, "apart") for entry in SMALL),
        *(mem("redis", entry, 90, "together") for entry in SMALL),
    )
    _, _, measured, reached = verdict(run, "up to 256 bytes, against redis")
    assert measured.startswith("90.0 x at least")
    assert "redis together); 4 of 8 cells" in measured
    assert reached == "**no**"


def test_the_least_of_all_entries_decides():
    run = run_of(
        *(
            mem(backend, entry, microseconds, placement, metric=metric)
            for metric in ("put", "take")
            for entry in SMALL
            for backend, microseconds, placement in (
                ("tupelo-shm", 1, "apart"),
                ("redis", 600, "apart"),
                ("redis", 101 if (metric, entry) == ("take", "Null") else 500, "together"),
            )
        )
    )
    _, _, measured, reached = verdict(run, "up to 256 bytes, against redis")
    assert measured == "101 x at least (take Null, redis together)"
    assert reached == "yes"
    one_placement = run_of(*(m for m in run.measures if m.parameters["placement"] == "apart"))
    _, _, measured, reached = verdict(one_placement, "up to 256 bytes, against redis")
    assert measured.endswith("; 8 of them with it at one placement only")
    assert reached == "too little to tell"


def test_what_was_not_measured_is_neither_reached_nor_missed():
    run = run_of(mem("tupelo-shm", "Null", 1))
    assert verdict(run, "up to 256 bytes, against javaspaces")[3] == "not measured"


def test_it_says_how_many_of_the_cells_were_measured():
    run = run_of(mem("tupelo-shm", "Null", 1), mem("redis", "Null", 200))
    _, _, measured, reached = verdict(run, "up to 256 bytes, against redis")
    assert measured.startswith("200 x at least (take Null, redis apart); 1 of 8 cells")
    assert reached == "too little to tell"
    slower = run_of(mem("tupelo-shm", "Null", 1), mem("redis", "Null", 99))
    assert verdict(slower, "up to 256 bytes, against redis")[3] == "**no**"


def test_a_fuller_space_is_compared_with_the_empty_one():
    run = run_of(
        mem("tupelo-shm", "Integer", 1, metric="put"),
        mem("tupelo-shm", "Integer", 1),
        mem("tupelo-shm", "Integer", 1.2, fill=1_000_000, metric="put"),
        mem("tupelo-shm", "Integer", 1.6, fill=1_000_000),
    )
    _, _, measured, reached = verdict(run, "against an empty one")
    assert measured == "1.60 x (take Integer, 1 000 000 there); 1 of 2 within it"
    assert reached == "**no**"


def test_of_fuller_spaces_the_worst_entry_decides():
    run = run_of(
        *(mem("tupelo-shm", entry, 1) for entry in ("Integer", "key first")),
        mem("tupelo-shm", "Integer", 1.1, fill=1_000_000),
        mem("tupelo-shm", "key first", 1.4, fill=1_000_000),
    )
    _, _, measured, reached = verdict(run, "against an empty one")
    assert measured == "1.40 x (take key first, 1 000 000 there); 2 of 2 within it"
    assert reached == "yes"
    cell = {"entry": "Null", "fill": 10_000, "placement": "apart"}
    run.remarks.append(Remark("mem", "tupelo-shm", cell, "over budget", ""))
    _, _, measured, reached = verdict(run, "against an empty one")
    assert measured.endswith("2 of 2 within it; 2 not measured")
    assert reached == "too little to tell"


@pytest.mark.parametrize(("fill", "reached"), [(10_000, "too little to tell"), (1_000_000, "yes")])
def test_the_order_of_the_fields_is_judged_in_the_fullest_space_of_the_plan(fill, reached):
    run = run_of(*(mem("tupelo-shm", entry, 1, fill=fill) for entry in ("key first", "key last")))
    assert verdict(run, "take by the last field")[3] == reached


def test_what_is_asked_of_every_payload_is_open_until_all_were_measured():
    def call(backend, payload_bytes, seconds):
        parameters = {"bytes": payload_bytes, "placement": "apart"}
        return Measure("rpc", backend, parameters, "round trip", "s", [seconds] * 4)

    run = run_of(call("tupelo-shm", 256, 1), call("tupelo-shm", 512, 1), call("grpc", 256, 100))
    _, _, measured, reached = verdict(run, "apart, against grpc")
    assert measured == "0.01 x at most (256 bytes); 1 of 2 payloads"
    assert reached == "too little to tell"
    assert verdict(run_of(*run.measures, call("grpc", 512, 2)), "apart, against grpc")[3] == "yes"
    lacking = Remark("rpc", "tupelo-shm", {"bytes": 1024, "placement": "apart"}, "failed", "")
    run = run_of(*run.measures, call("grpc", 512, 2), remarks=[lacking])
    _, _, measured, reached = verdict(run, "apart, against grpc")
    assert measured.endswith("; 2 of 3 payloads")
    assert reached == "too little to tell"


def test_a_peer_that_is_significantly_faster_in_one_case_misses_the_target_and_is_listed():
    cell = {"case": "sorting", "size": 7, "workers": 5}
    run = run_of(*total("tupelo-shm", 1.0, **cell), *total("redis", 0.5, **cell))
    _, _, measured, reached = verdict(run, "significantly faster in a case")
    assert reached == "**no**"
    assert "1 of 1 comparisons; redis case=sorting" in measured
    text, listed = faster_peers(run)
    assert text.startswith(
        "In 1 of 1 comparisons of times the mean of a peer is less than ours: in 1"
    )
    assert listed.rows == (("cases case=sorting size=7 workers=5", "total", "redis", "2.00 x"),)


def test_a_peer_that_is_faster_but_not_significantly_misses_no_target_but_is_listed():
    cell = {"case": "sorting", "size": 7, "workers": 5}
    ours = Measure("cases", "tupelo-shm", cell, "total", "s", [1.0, 2.0, 3.0, 4.0])
    theirs = Measure("cases", "redis", cell, "total", "s", [1.1, 1.9, 2.9, 3.9])
    run = run_of(ours, theirs)
    assert verdict(run, "significantly faster in a case")[3] == "yes"
    text, listed = faster_peers(run)
    assert "in 0 significantly, in 1 not (a tilde), in 0 there are too few" in text
    (row,) = listed.rows
    assert row[-1] == "~1.02 x"
    page = markdown(run, EXPERIMENTS, [])
    assert text in page
    assert "| redis | \\~1.02 x |" in page
    assert text in html_page(run, EXPERIMENTS)


def test_a_peer_that_is_faster_in_too_few_repeats_leaves_the_target_open_and_is_listed():
    cell = {"case": "sorting", "size": 7, "workers": 5}
    ours = Measure("cases", "tupelo-shm", cell, "total", "s", [2.0, 2.1, 2.2])
    theirs = Measure("cases", "redis", cell, "total", "s", [1.0, 1.1, 1.2])
    run = run_of(ours, theirs)
    _, _, measured, reached = verdict(run, "significantly faster in a case")
    assert measured.startswith("0 of 1 comparisons; perhaps 1 of 1 comparisons; redis")
    assert reached == "too little to tell"
    _, listed = faster_peers(run)
    assert listed.rows == (("cases case=sorting size=7 workers=5", "total", "redis", "?1.91 x"),)


@pytest.mark.parametrize(("series", "rows"), [("overlapping", 0), ("aged", 0), ("paper", 1)])
def test_response_times_are_compared_only_where_all_have_the_same_work(series, rows):
    ours, theirs = (
        Measure("settle", backend, {"series": series}, "response time", "s", [seconds] * 4)
        for backend, seconds in (("tupelo-shm", 2.0), ("redis", 1.0))
    )
    assert len(faster_peers(run_of(ours, theirs))[1].rows) == rows


def test_where_coordination_is_much_we_have_to_be_faster_than_each():
    much, little = ({"case": "ocean", "workers": n} for n in (5, 15))
    run = run_of(
        *total("tupelo-shm", 1.0, 0.1, **much), *total("redis", 0.9, 0.3, **much),
        *total("tupelo-shm", 1.0, 0.1, **little), *total("redis", 0.9, 0.1, **little),
    )  # fmt: skip
    _, _, measured, reached = verdict(run, "is coordination")
    assert measured == "1 of 1 comparisons; redis case=ocean workers=5"
    assert reached == "**no**"


@pytest.mark.parametrize("seconds", [[0.9, 2.1, 2.9, 4.2], [1.1, 1.9, 2.9, 3.9], [9.0, 9.1, 9.2]])
def test_where_coordination_is_much_a_mean_that_can_be_by_chance_tells_nothing(seconds):
    cell = {"case": "ocean", "workers": 5}
    ours = [1.0, 2.0, 3.0, 4.0] if len(seconds) > 3 else [1.0, 2.0, 3.0]
    run = run_of(
        Measure("cases", "tupelo-shm", cell, "total", "s", ours),
        Measure("cases", "redis", cell, "total", "s", seconds),
        Measure("cases", "redis", cell, "coordination", "", [0.9]),
    )
    _, _, measured, reached = verdict(run, "is coordination")
    assert measured == "0 of 1 comparisons; 1 can not be told"
    assert reached == "too little to tell"


NOT_MADE = [
    ("over budget", {"case": "ocean", "workers": 15}, "1 not made (over budget)"),
    ("failed", {"case": "ocean", "workers": 15}, "1 not made (failed)"),
    ("wrong result", {"case": "ocean", "workers": 15}, "1 not made (wrong result)"),
    ("not installed", {}, "javaspaces not installed"),
]


@pytest.mark.parametrize(("why", "cell", "told"), NOT_MADE)
@pytest.mark.parametrize(("seconds", "reached"), [(2.0, "too little to tell"), (0.5, "**no**")])
def test_one_comparison_misses_a_target_and_only_all_of_them_reach_it(
    why, cell, told, seconds, reached
):
    made = {"case": "sorting", "workers": 5}
    run = run_of(*total("tupelo-shm", 1.0, 0.3, **made), *total("redis", seconds, **made))
    words = ("significantly faster in a case", "is coordination")
    assert {verdict(run, each)[3] for each in words} == {"yes" if seconds > 1 else "**no**"}
    run.remarks.append(Remark("cases", "javaspaces", cell, why, ""))
    for each in words:
        _, _, measured, word = verdict(run, each)
        assert measured.endswith(f"; {told}")
        assert word == reached


def test_a_comparison_is_not_made_either_where_we_were_not_measured():
    made, lacking = ({"case": "sorting", "workers": n} for n in (5, 15))
    run = run_of(
        *total("tupelo-shm", 1.0, **made), *total("redis", 2.0, **made),
        *total("redis", 2.0, **lacking),
        remarks=[
            Remark("cases", "tupelo-shm", lacking, "over budget", ""),
            Remark("cases", "mp-queue", made, "can not", ""),  # which nobody could ever compare
        ],
    )  # fmt: skip
    _, _, measured, reached = verdict(run, "significantly faster in a case")
    assert measured == "0 of 1 comparisons; 1 not made (over budget)"
    assert reached == "too little to tell"


@pytest.mark.parametrize(
    ("curve", "measured", "reached"),
    [
        ({2: 60.0, 8: 100.0, 14: 90.0, 22: 79.0}, "79%", "**no**"),
        ({2: 60.0, 8: 100.0, 14: 90.0, 22: 81.0}, "81%", "yes"),
        ({2: 60.0, 8: 100.0, 22: 79.0}, "79%; 3 of 4 points, without 14", "**no**"),
        ({22: 81.0}, "100%; 1 of 4 points, without 2, 8, 14", "too little to tell"),
        (
            {2: 60.0, 8: 100.0},
            "with 8 clients at most; 2 of 4 points, without 14, 22",
            "too little to tell",
        ),
    ],
)
def test_throughput_with_most_clients_is_a_share_of_the_best(curve, measured, reached):
    run = run_of(
        *(
            Measure(
                "settle", "tupelo-shm", {"series": "overlapping", "entry": "Null", "clients": q},
                "throughput", "operations/s", [x],
            )
            for q, x in curve.items()
        )
    )  # fmt: skip
    assert verdict(run, "22 clients")[2:] == (measured, reached)


def aging_run(response_s, throughput):
    """Eight clients in a new space and in an aged one; with the paper's delays in a new one."""
    cells = {
        "overlapping": {"series": "overlapping", "entry": "Null", "clients": 8},
        "aged": {"series": "aged", "entry": "Null", "clients": 8, "aged by": 3_000},
        "paper": {"series": "paper", "entry": "Null", "clients": 8},
    }
    found = [
        ("overlapping", "response time", [1.0, 1.01, 1.02, 1.03]),
        ("overlapping", "throughput", [100.0, 101.0, 102.0, 103.0]),
        ("aged", "response time", response_s),
        ("aged", "throughput", throughput),
        ("aged", "aging", [0.5, 0.7]),
        ("aged", "cleaning", [0.4]),
        ("paper", "throughput", [4_000.0]),
        ("paper", "objects", [1_000.0]),
    ]
    return run_of(*(Measure("settle", "redis", cells[at], name, "s", of) for at, name, of in found))


def test_what_aging_adds_has_a_tilde_where_it_can_be_by_chance():
    run = aging_run([1.2, 1.21, 1.22, 1.23], [90.0, 104.0, 105.0, 106.0])
    settle = next(e for e in EXPERIMENTS if e.name == "settle")
    added = {m.metric: m.samples for m in settle.derive(run) if "added" in m.metric}
    assert added == {
        "response time added by aging": [pytest.approx(1.215 / 1.015 - 1)],
        "throughput added by aging": [pytest.approx(101.25 / 101.5 - 1)],
    }
    (question,) = [q for q in questions(run, EXPERIMENTS) if "aging" in q.title]
    printed, by_response, by_throughput = question.tables
    assert by_response.rows == (("redis", "+20 %"),)
    assert by_throughput.rows == (("redis", "~+0 %"),)
    # A second to age and clean, and four for 2 x 1 000 x 8 operations with the paper's delays.
    assert printed.rows[0][3:] == ("3 000 operations", "+20 %", "~+0 %", "20 %")
    few = aging_run([1.2, 1.21], [90.0, 104.0])
    assert questions(few, EXPERIMENTS)[-1].tables[0].rows[0][4:6] == ("?+19 %", "?-4 %")


def test_no_share_of_aging_stands_beside_the_printed_one_without_the_papers_delays():
    run = aging_run([1.2], [90.0])
    run.measures = [m for m in run.measures if m.parameters["series"] != "paper"]
    (question,) = [q for q in questions(run, EXPERIMENTS) if "aging" in q.title]
    assert question.tables[0].rows[0][-1] == "-"


def test_a_figure_of_aged_spaces_begins_with_the_new_one():
    settle = next(e for e in EXPERIMENTS if e.name == "settle")
    run = aging_run([1.2], [90.0])
    (figure,) = [f for f in settle.figures(run) if f.title == "8 clients, aged: response time"]
    (series,) = figure.series
    assert [(point.x, point.mean) for point in series.points] == [
        (0, pytest.approx(1.015)),
        (3_000, 1.2),
    ]
    (other,) = [f for f in settle.figures(run) if f.title == "14 clients, aged: response time"]
    assert other.series == ()


def visited(tuples, order, means):
    parameters = {"case": "visits", "tuples": tuples, "search": order, "workers": 7}
    return Measure("cases", "tupelo-shm", parameters, "visited nodes", "", means)


@pytest.mark.parametrize(
    ("learned", "seeds", "outcome", "reached"),
    [
        ([0.5] * 20, "more with 0 seeds, fewer with 20", "fewer", "yes"),
        ([1.01, 0.99] * 10, "more with 10 seeds, fewer with 10", "no difference", "yes"),
        ([1.01] * 20, "more with 20 seeds, fewer with 0", "more", "**no**"),
        ([1.01] * 15 + [0.5] * 5, "more with 15 seeds, fewer with 5", "more", "**no**"),
    ],
)
def test_both_orders_of_a_search_are_compared_seed_by_seed_for_each_distribution(
    learned, seeds, outcome, reached
):
    in_turn = [2 + seed / 10 for seed in range(20)]
    run = run_of(
        visited("everywhere", "round robin", in_turn),
        visited(
            "everywhere",
            "success factor",
            [by * mean for by, mean in zip(learned, in_turn, strict=True)],
        ),
    )
    _, _, measured, word = verdict(run, "tuples everywhere")
    assert f"; {seeds}: {outcome} (p = " in measured
    assert word == reached
    assert verdict(run, "tuples mostly in the first")[2:] == ("-", "not measured")
    (question,) = [q for q in questions(run, EXPERIMENTS) if "ask first" in q.title]
    (row,) = question.tables[0].rows
    assert row[2].startswith("2.95 (2.00 - 3.90)")
    assert row[-2] == outcome
    assert row[-1] == f"{seeds.split()[2]} of 20"
    cases = next(e for e in EXPERIMENTS if e.name == "cases")
    (p,) = cases.derive(run)
    assert f"{p.samples[0]:.2g}" == row[5]
    assert (p.samples[0] < 0.05) is (outcome != "no difference")


def test_five_seeds_are_too_few_to_tell():
    run = run_of(
        visited("everywhere", "round robin", [1.0] * 5),
        visited("everywhere", "success factor", [2.0] * 5),
    )
    assert verdict(run, "tuples everywhere")[3] == "too little to tell"


class Renamed(Settle):
    """The experiment with its tables under other titles, or other keys."""

    def __init__(self, **changed):
        self.changed = changed

    def printed(self, run):
        return [replace(table, **self.changed) for table in super().printed(run)]


def test_a_renamed_table_still_answers_its_question_and_a_missing_one_is_said_aloud():
    curve = ((2, 100.0, 1.0), (8, 90.0, 6.0))
    run = run_of()
    for clients, throughput, response_s in curve:
        parameters = {"series": "overlapping", "entry": "Null", "clients": clients}
        run.measures += [
            Measure("settle", "redis", parameters, "throughput", "operations/s", [throughput]),
            Measure("settle", "redis", parameters, "response time", "s", [response_s]),
        ]
    renamed = Renamed(title="Another title")
    (question,) = questions(run, [renamed])
    assert question.tables[0].title == "Another title"
    # It stands at its question, and not a second time among the printed numbers.
    assert markdown(run, [renamed], []).count("8 to 14 (JavaSpaces)") == 1
    assert not [each for each in questions(run, []) if each.tables[0].title == "Another title"]
    with pytest.raises(NoSuchTableError, match="settle has no table 'knee' among other"):
        questions(run, [Renamed(key="other")])


def test_speed_up_is_the_ratio_of_the_means():
    sort = next(e for e in EXPERIMENTS if e.name == "sort")
    times = {1: [4.0, 8.0], 4: [1.0, 2.0]}
    run = run_of(
        *(
            Measure("sort", "redis", {"size": 9, "workers": n}, "response time", "s", samples)
            for n, samples in times.items()
        )
    )
    found = {(m.metric, m.parameters["workers"]): m.summary.mean for m in sort.derive(run)}
    assert found["speed-up", 1] == 1
    assert found["speed-up", 4] == 4
    assert found["efficiency", 4] == found["work-normalised speed-up", 4] == 1
    assert found["work-normalised efficiency", 4] == 0.25
    # The spread of one of the two times would be too narrow.
    run.measures = sort.derive(run)
    rows = list(csv.DictReader(csv_text(run).splitlines()))
    assert {(row["count"], row["sd"], row["ci95"]) for row in rows} == {("1", "", "")}
    speed_ups = next(f for f in sort.figures(run) if f.title == "9 numbers: speed-up")
    assert [point.sd for point in speed_ups.series[0].points] == [None, None]


def test_beside_a_mean_of_two_kinds_of_repeats_stand_the_least_and_the_greatest():
    parameters = {"entry": "Integer", "fill": 0, "placement": "apart"}
    samples = [50e-9, 70e-9, 200e-9, 220e-9]
    run = run_of(Measure("mem", "redis", parameters, "put", "s", samples, groups=[2, 2]))
    text = "135 ns (60.0 - 210)"
    (shown,) = tables(run, "mem")
    assert shown.rows[0][1] == text
    assert f"| redis | {text} |" in markdown(run, (YARDSTICKS, *EXPERIMENTS), [])
    steady = Measure("mem", "redis", parameters, "put", "s", [1.0, 1.001])
    assert tables(run_of(steady), "mem")[0].rows[0][1] == "1.00 s"
    (terse,) = tables(run, "mem", narrow=True)  # on a terminal there is no room
    assert terse.rows[0][1] == "135 ns"
    (row,) = csv.DictReader(csv_text(run).splitlines())
    assert (row["least"], row["greatest"]) == ("5e-08", "2.2e-07")
    assert (row["repeats"], row["repeat_least"], row["repeat_greatest"]) == (
        "2",
        "6e-08",
        "2.1e-07",
    )


def test_the_page_says_how_many_repeats_there_are_and_where_they_are_too_few():
    def put(entry, repeats):
        samples = [1.0] * 20 * repeats
        parameters = {"entry": entry, "fill": 0, "placement": "apart"}
        return Measure("mem", "redis", parameters, "put", "s", samples, groups=[20] * repeats)

    page = markdown(run_of(put("Null", 3), put("Integer", 5)), (YARDSTICKS, *EXPERIMENTS), [])
    assert "| mem | 2 | 3 to 5 | 60 to 100 | 1 |" in page


def test_the_page_says_what_was_not_measured_and_how_each_is_driven():
    run = run_of(
        mem("tupelo-shm", "Null", 1),
        remarks=[
            Remark("cases", "redis", {"size": n}, "over budget", "a repeat takes 9 s")
            for n in (10, 100)
        ],
    )
    page = markdown(run, (YARDSTICKS, *EXPERIMENTS), [("A title", "figures/a.svg")])
    assert "| cases | redis | over budget | 2 | size=10: a repeat takes 9 s |" in page
    assert "a socket \\| a list" in page  # a bar would end the cell
    assert "![A title](figures/a.svg)" in page
    assert "apart: server on 1, clients on 0" in page
    assert "abacus" in page


def test_a_figure_that_can_not_be_drawn_is_listed_with_its_number_and_the_reason():
    cell = {"case": "sorting", "size": 10_000_000, "workers": 5}
    run = run_of(
        *total("tupelo-shm", 1.0, **cell),
        remarks=[
            Remark("cases", "redis", cell, "over budget", ""),
            Remark("cases", "redis", {**cell, "workers": 15}, "over budget", ""),
            Remark("cases", "redis", {**cell, "size": 1_000_000}, "failed", ""),
            Remark("cases", "rinda", {}, "not installed", ""),
        ],
    )
    rows = {row[0]: row[1:] for row in undrawn(run, EXPERIMENTS).rows}
    assert rows["Sorting of 10 000 000 numbers: total"] == (
        "Figure 12 of the paper",
        "one mark only; 2 cells over budget; rinda not installed",
    )
    assert rows["Sorting of 10 000 000 numbers: remote reading"] == (
        "Figure 13 of the paper",
        "2 cells over budget; rinda not installed",
    )
    # Its cells are ours alone, so nobody else's remark is the reason.
    each = "Matrix 100 x 100 by rows, uniform: each search of 5 workers, tupelo-shm"
    assert rows[each] == ("Figure 23 of the paper", "not measured")
    assert not [title for title in rows if "Time of a put" in title]  # `mem` was not run at all
    words = "Figure 12 of the paper", "one mark only; 2 cells over budget"
    for text in (markdown(run, EXPERIMENTS, []), html_page(run, EXPERIMENTS)):
        assert all(word in text for word in words)


def test_a_figure_that_can_be_drawn_is_not_listed():
    run = run_of(*(mem("tupelo-shm", entry, 1, metric="put") for entry in SMALL))
    titles = [row[0] for row in undrawn(run, EXPERIMENTS).rows]
    assert "Time of a put, empty space" not in titles
    assert "Time of a take, empty space" in titles


def test_a_multiplication_by_blocks_is_drawn_beside_that_by_rows():
    size = {"size": 100}
    run = run_of(
        *(
            measure
            for backend in ("tupelo-shm", "redis")
            for workers in (1, 5)
            for measure in total(backend, 2.0, case="matrix rows", rows="uniform", **size,
                                 workers=workers)
        ),
        *total("tupelo-shm", 1.0, case="matrix blocks", block=10, **size, workers=5),
        *total("tupelo-shm", 7.0, case="matrix rows", rows="B-1", **size, workers=5),
    )  # fmt: skip
    cases = next(e for e in EXPERIMENTS if e.name == "cases")
    (figure,) = [f for f in cases.figures(run) if f.note.startswith("Figure 25")]
    assert figure.title == "Matrix 100 x 100 by blocks of 10 x 10 and by rows: total"
    assert [(s.label, s.beside, [p.x for p in s.points]) for s in figure.series] == [
        ("tupelo-shm", "", [5]),
        ("tupelo-shm, rows", "tupelo-shm", [1, 5]),
    ]
    assert "stroke-dasharray" in drawing.svg(figure)


def test_the_page_has_the_mean_and_the_standard_deviation_of_what_was_measured():
    cell = {"case": "sorting", "size": 7, "workers": 5}
    several = Measure("cases", "redis", cell, "total", "s", [1.0, 2.0, 3.0, 4.0])
    single = Measure("cases", "sqlite", cell, "total", "s", [2.0])
    grouped = Measure("cases", "redis", cell, "search", "s", [1.0, 3.0], groups=[2])
    follows = Measure("cases", "redis", cell, "p", "", [0.5], derived=True)
    run = run_of(several, single, grouped, follows)
    assert [(table.title, table.heads, table.rows) for table in deviations(run, "cases")] == [
        (
            "total",
            ("", "redis", "sqlite"),
            (("case=sorting size=7 workers=5", "2.50 ± 1.29 s; ± 2.05", "2.00 s"),),
        ),
        # Samples of one repeat are alike: they have a deviation, but no interval.
        ("search", ("", "redis"), (("case=sorting size=7 workers=5", "2.00 ± 1.41 s"),)),
    ]
    assert "<td>2.50 ± 1.29 s; ± 2.05</td>" in html_page(run, EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_whoever_takes_no_part_in_an_experiment_is_listed_with_the_reason(experiment):
    taking_part = {peer.name for peer in experiment.peers(PEERS)}
    listed = [
        name
        for experiments, part, systems, _ in ABSENT
        if experiment.name in experiments and not part
        for name in systems
    ]
    assert sorted(listed) == sorted({peer.name for peer in PEERS} - taking_part)


def test_who_lacks_a_part_of_the_calls_is_listed():
    rpc = next(e for e in EXPERIMENTS if e.name == "rpc")
    for peer in rpc.peers(PEERS):
        asked = {name for job in rpc.jobs(peer, Options()) for name in job.parameters}
        lacks = {
            part
            for part, name in (
                ("open loop", "load"), ("one to many", "readers"), ("undirected", "requests")
            )
            if name not in asked
        }  # fmt: skip
        assert lacks == {part for _, part, systems, _ in ABSENT if part and peer.name in systems}


def test_the_page_says_who_takes_no_part_in_what_was_run():
    run = run_of(mem("tupelo-shm", "Null", 1))
    row = ("mem", "", "udp, grpc, omniorb", "carries calls, and holds no tuples")
    assert row in absent(run).rows
    assert {each[0] for each in absent(run).rows} == {"mem"}
    assert f"| {' | '.join(row)} |" in markdown(run, EXPERIMENTS, [])
    assert '<td class="words">carries calls, and holds no tuples</td>' in html_page(
        run, EXPERIMENTS
    )
