"""The results page: what it says follows from the record."""

import csv
import re
from dataclasses import replace

import pytest
from records import SMALL, mem, run_of, total

from tupelo_bench.backends.registry import PEERS
from tupelo_bench.experiments.everything import EXPERIMENTS, YARDSTICKS
from tupelo_bench.experiments.mem import memory
from tupelo_bench.experiments.settle import Settle
from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.record import Measure, Remark
from tupelo_bench.presentation.tables import Table, tables
from tupelo_bench.report import drawing
from tupelo_bench.report.absent import ABSENT, absent
from tupelo_bench.report.deviations import deviations
from tupelo_bench.report.files import csv_text
from tupelo_bench.report.page import page as html_page
from tupelo_bench.report.questions import questions
from tupelo_bench.report.questions.question import NoSuchTableError
from tupelo_bench.report.results import markdown, table
from tupelo_bench.report.undrawn import undrawn
from tupelo_bench.report.words import words
from tupelo_bench.runner import Options


def test_why_a_cell_failed_stands_in_one_line_of_the_table():
    why = 'Traceback (most recent call last):\n  File "<stdin>", line 1\n\nOSError: a | b\n'
    remarks = [Remark("mem", peer, {}, "failed", why) for peer in ("redis", "sqlite")]
    page = markdown(run_of(mem("tupelo-shm", "Null", 1), remarks=remarks), EXPERIMENTS, [])
    section = page.split("## Not measured")[1].split("##")[0].strip().splitlines()
    rows = [line for line in section if line.startswith("| mem")]
    assert len(rows) == 2
    told = 'Traceback (most recent call last): / File "&lt;stdin>", line 1 / OSError: a \\| b'
    assert all(row.endswith(f"| {told} |") for row in rows)


def test_what_a_run_was_made_on_stands_in_tables_and_in_no_long_sentence():
    run = run_of(mem("tupelo-shm", "Null", 1))
    versions = {f"system {number}": f"{number}.0" for number in range(20)}
    placements = {f"experiment {number}": ("apart: server on 1, clients on 0",) for number in "12"}
    section = markdown(replace(run, versions=versions, placements=placements), EXPERIMENTS, [])
    section = section.split("## The run")[1].split("\n## ")[0]
    assert "| system 7 | 7.0 |" in section
    assert "| experiment 2 | apart: server on 1, clients on 0 |" in section
    sentences = [line for line in section.splitlines() if not line.startswith("|")]
    assert all(len(sentence.split()) <= 25 for sentence in sentences)


def test_a_column_of_words_goes_from_the_left_and_one_of_figures_from_the_right():
    rows = (("put", "3 ns", "yes"), ("take", "-", "-"), ("read", "~0.5 x", "**no**"))
    rules = table(Table("", ("what", "measured", "reached"), rows)).splitlines()[1]
    assert rules == "| --- | ---: | --- |"


def test_a_quick_run_has_no_verdicts():
    run = run_of(mem("tupelo-shm", "Null", 1), mem("redis", "Null", 90))
    for quick in (False, True):
        pages = (
            markdown(replace(run, quick=quick), EXPERIMENTS, []),
            html_page(replace(run, quick=quick), EXPERIMENTS),
        )
        assert all(("was to show" in page) is not quick for page in pages)


def aging_run(response_s, throughput):
    """Eight clients in a new space and in an aged one; with the paper's delays in a new one."""
    cells = {
        "all at once": {"series": "all at once", "entry": "Null", "clients": 8},
        "aged": {"series": "all at once, aged", "entry": "Null", "clients": 8, "aged by": 3_000},
        "paper aged": {"series": "paper aged", "entry": "Null", "clients": 8, "aged by": 3_000},
    }
    found = [
        ("all at once", "response time", [1.0, 1.01, 1.02, 1.03]),
        ("all at once", "throughput", [100.0, 101.0, 102.0, 103.0]),
        ("aged", "response time", response_s),
        ("aged", "throughput", throughput),
        ("aged", "aging", [0.5, 0.7]),
        ("aged", "cleaning", [0.4]),
        ("paper aged", "share of aging and cleaning", [0.1, 0.3]),
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
    assert printed.rows[0][3:] == ("3 000 operations", "-", "+20 %", "~+0 %", "20.0 %")
    few = aging_run([1.2, 1.21], [90.0, 104.0])
    assert questions(few, EXPERIMENTS)[-1].tables[0].rows[0][5:7] == ("?+19 %", "?-4 %")


def test_beside_the_printed_cost_of_aging_stands_that_of_clients_with_as_many_objects():
    run = aging_run([1.0, 1.01, 1.02, 1.03], [100.0, 101.0, 102.0, 103.0])
    for series, response_s in (("paper", [1.0, 1.01, 1.02, 1.03]), ("paper aged", [2.0, 2.1])):
        cell = {"series": series, "entry": "Null", "clients": 8}
        # Another kind of entry is no yardstick for this one.
        other = Measure("settle", "redis", {**cell, "entry": "File"}, "response time", "s", [9.0])
        aged = {"aged by": 3_000} if series == "paper aged" else {}
        run.measures += [
            *([] if aged else [other]),
            Measure("settle", "redis", {**cell, **aged}, "response time", "s", response_s),
        ]
    (question,) = [q for q in questions(run, EXPERIMENTS) if "aging" in q.title]
    printed, *added = question.tables
    assert printed.rows[0][3:7] == ("3 000 operations", "?+102 %", "~+0 %", "~+0 %")
    assert [table.rows[0][1] for table in added] == ["?+102 %", "~+0 %", "~+0 %"]
    assert "paper's delays" in added[0].title


def test_no_share_of_aging_stands_beside_the_printed_one_without_the_papers_delays():
    run = aging_run([1.2], [90.0])
    run.measures = [m for m in run.measures if m.parameters["series"] != "paper aged"]
    (question,) = [q for q in questions(run, EXPERIMENTS) if "aging" in q.title]
    assert question.tables[0].rows[0][-1] == "-"


def test_a_figure_of_aged_spaces_begins_with_the_new_one():
    settle = next(e for e in EXPERIMENTS if e.name == "settle")
    run = aging_run([1.2], [90.0])
    (figure,) = [
        f
        for f in settle.figures(run)
        if f.title == "Null, 8 clients, aged, all at once: response time"
    ]
    (series,) = figure.series
    assert [(point.x, point.mean) for point in series.points] == [
        (0, pytest.approx(1.015)),
        (3_000, 1.2),
    ]
    (other,) = [
        f
        for f in settle.figures(run)
        if f.title == "Null, 14 clients, aged, all at once: response time"
    ]
    assert other.series == ()


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
        parameters = {"series": "all at once", "entry": "Null", "clients": clients}
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


def test_a_table_has_whom_one_asks_for_first_and_the_others_as_so_many_times_that():
    cell = {"entry": "Null", "fill": 0, "placement": "apart"}
    times = {
        "tupelo-shm": [1.0, 1.1, 1.2, 1.3],
        "redis": [2.0, 2.1, 2.2, 2.3],
        "sqlite": [2.0, 2.1, 2.2, 2.4],
    }
    run = run_of(*(Measure("mem", name, cell, "put", "s", of) for name, of in times.items()))
    (ours,) = tables(run, "mem", narrow=True)
    assert ours.heads[1:] == ("tupelo-shm", "redis", "sqlite")
    (theirs,) = tables(run, "mem", narrow=True, against="redis")
    assert theirs.heads[1:] == ("redis", "tupelo-shm", "sqlite")
    assert [each.partition("  ")[2] for each in theirs.rows[0][1:]] == ["", "0.53 x", "~1.01 x"]
    (another,) = tables(run, "mem", narrow=True, against="grpc")  # which took no part in it
    assert another == ours


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
    assert "![A title](figures/a.svg)\n" in page
    assert "apart: server on 1, clients on 0" in page
    assert "abacus" in page


def test_an_index_is_said_to_be_in_the_memory_of_a_record_that_knows_it():
    cell = {"entry": "key first", "fill": 20_000, "placement": "apart"}
    run = run_of(Measure("mem", "tupelo-shm", cell, memory.METRIC, "bytes", [131.0]))
    (question,) = [q for q in questions(run, EXPERIMENTS) if "memory" in q.title]
    assert question.how.endswith("the record does not say.")
    run.measures.append(Measure("mem", "tupelo-shm", cell, memory.ASKED_FIRST, "", [1_000.0]))
    (question,) = [q for q in questions(run, EXPERIMENTS) if "memory" in q.title]
    assert question.how.endswith("an index is part of what they take.")


def test_the_lines_of_each_adapter_stand_in_a_table():
    notes = {"redis": "By redis-py. Its adapter has 120 lines.", "udp": "Its adapter has 90 lines.",
             "tupelo-shm": "Its adapter has 130 lines.", "rinda": "By its own client."}  # fmt: skip
    run = replace(run_of(mem("tupelo-shm", "Null", 1.0)), notes=notes)
    (question,) = [q for q in questions(run, EXPERIMENTS) if "code" in q.title]
    rows = question.tables[0].rows
    assert rows == (("tupelo-shm", "130"), ("udp", "90"), ("redis", "120"))


def test_the_page_explains_the_words_of_the_experiments_that_were_run():
    run = run_of(mem("tupelo-shm", "Null", 1))
    explained = dict(words(run).rows)
    assert {"cell", "repeat", "cycle", "fill"} < explained.keys()
    assert "phase" not in explained, "settle was not run"
    assert f"| cycle | {explained['cycle']} |" in markdown(run, EXPERIMENTS, [])
    assert explained["cycle"] in html_page(run, EXPERIMENTS)


def test_a_figure_of_latencies_says_the_rate_of_each():
    under = {"placement": "apart", "load": "half of its own"}
    histogram = Histogram()
    histogram.record([1_000, 2_000, 3_000, 900_000])
    run = run_of(
        Measure(
            "rpc", "redis", under, "latency under load", "s", [1e-6], histogram=histogram.encoded()
        ),
        Measure("rpc", "redis", under, "rate reached", "requests/s", [44_000.0]),
    )
    rpc = next(e for e in EXPERIMENTS if e.name == "rpc")
    (figure,) = [f for f in rpc.figures(run) if f.title.startswith("Latency") and not f.empty]
    assert [(series.label, series.detail) for series in figure.series] == [("redis", "44.0k/s")]
    assert "redis, 44.0k/s" in drawing.svg(figure)


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
        "Figure 12 of LINDA",
        "one mark only; 2 cells over budget; rinda not installed",
    )
    assert rows["Sorting of 10 000 000 numbers: remote reading"] == (
        "Figure 13 of LINDA",
        "2 cells over budget; rinda not installed",
    )
    # Its cells are ours alone, so nobody else's remark is the reason.
    each = "Matrix 50 x 50 by rows, as listed, uniform: each search of 5 workers, tupelo-shm"
    note = "Figure 23 of LINDA; all searches of one repeat"
    assert rows[each] == (note, "not measured")
    assert not [title for title in rows if "Time of a put" in title]  # `mem` was not run at all
    words = "Figure 12 of LINDA", "one mark only; 2 cells over budget"
    for text in (markdown(run, EXPERIMENTS, []), html_page(run, EXPERIMENTS)):
        assert all(word in text for word in words)


def test_marks_of_one_value_are_no_line_and_the_list_says_of_which():
    """Its axis would be a decade about that value, with nothing on it."""
    cell = {"case": "sorting", "size": 10_000_000, "workers": 5}
    run = run_of(*total("tupelo-shm", 1.0, **cell), *total("redis", 2.0, **cell))
    title = "Sorting of 10 000 000 numbers: total"
    rows = {row[0]: row[1:] for row in undrawn(run, EXPERIMENTS).rows}
    assert rows[title] == ("Figure 12 of LINDA", "workers 5 only")
    run.measures += total("redis", 3.0, **{**cell, "workers": 15})
    assert title not in [row[0] for row in undrawn(run, EXPERIMENTS).rows]


def test_a_figure_that_can_be_drawn_is_not_listed():
    run = run_of(*(mem("tupelo-shm", entry, 1, metric="put") for entry in SMALL))
    titles = [row[0] for row in undrawn(run, EXPERIMENTS).rows]
    assert "Time of a put" not in titles
    assert "Time of a take" in titles


def test_beside_a_printed_range_over_the_workers_stands_that_of_all_that_were_measured():
    def read(backend, seconds, workers):
        cell = {"case": "ocean", "search": "round robin", "size": 1_200, "workers": workers}
        return Measure("cases", backend, cell, "remote reading", "s", [seconds])

    cases = next(e for e in EXPERIMENTS if e.name == "cases")

    def row(*measures):
        return cases.printed(run_of(*measures))[1].rows[0]

    two = (read("tupelo-shm", 288e-6, 15), read("tupelo-shm", 40e-6, 5))
    assert row(*two, read("redis", 1.39e-4, 5))[1:] == (
        "0.0188 - 0.0597 ms", "2.0341 - 3.0108 ms", "> 190 ms",
        "40.0 - 288 µs, with 5 to 15 workers", "139 µs, with 5 workers",
    )  # fmt: skip
    assert row()[-2:] == ("-", "-")


def test_the_results_say_what_the_way_into_another_language_costs():
    run = run_of(
        mem("rinda", "Null", 48, metric="bridge"),
        mem("rinda", "Double 2048", 283, metric="bridge"),
        mem("rinda", "Integer", 60, metric="bridge"),
        mem("redis", "Null", 9, metric="put"),
    )
    page = markdown(run, EXPERIMENTS, [])
    (row,) = [line for line in page.splitlines() if line.startswith("| rinda | 48")]
    assert re.fullmatch(r"\| rinda \| 48\.\d µs .*, Null \| 28\d µs .*, Double 2048 \|", row)
    assert "way into another language" not in markdown(run_of(run.measures[-1]), EXPERIMENTS, [])


def test_a_multiplication_by_blocks_is_drawn_beside_that_by_rows():
    size = {"size": 100}
    run = run_of(
        *(
            measure
            for backend in ("tupelo-shm", "redis")
            for workers in (1, 5)
            for measure in total(backend, 2.0, case="matrix rows", rows="uniform", **size,
                                 search="round robin", workers=workers)
        ),
        *total("tupelo-shm", 1.0, case="matrix blocks", block=10, **size, workers=5),
        *total("tupelo-shm", 7.0, case="matrix rows", rows="B-1", **size, workers=5,
               search="round robin"),
    )  # fmt: skip
    cases = next(e for e in EXPERIMENTS if e.name == "cases")
    (figure,) = [f for f in cases.figures(run) if f.note.startswith("Figure 25") and f.series]
    assert figure.title == "Matrix 100 x 100 by blocks of 10 x 10: total"
    assert figure.note == "Figure 25 of LINDA; dashed: by rows, uniform"
    assert [(s.label, s.beside, [p.x for p in s.points]) for s in figure.series] == [
        ("tupelo-shm", "", [5]),
        ("tupelo-shm, by rows, uniform", "tupelo-shm", [1, 5]),
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
    assert "<td>2.50 ± 1.29 s; ± 2.05<" in html_page(run, EXPERIMENTS)


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
                ("open loop", "load"), ("one to many", "readers"), ("undirected", "requests"),
                ("directed", "order"),
            )
            if name not in asked
        }  # fmt: skip
        assert lacks == {
            part
            for experiments, part, systems, _ in ABSENT
            if part and "rpc" in experiments and peer.name in systems
        }


def test_the_page_says_who_takes_no_part_in_what_was_run():
    run = run_of(mem("tupelo-shm", "Null", 1))
    row = ("mem", "", "udp, grpc, omniorb", "carries calls, and holds no tuples")
    assert row in absent(run).rows
    assert {each[0] for each in absent(run).rows} == {"mem"}
    assert f"| {' | '.join(row)} |" in markdown(run, EXPERIMENTS, [])
    assert "<td>carries calls, and holds no tuples<" in html_page(run, EXPERIMENTS)


def test_a_system_of_an_older_record_is_not_said_to_take_no_part():
    older = Measure("settle", "mp-queue", {}, "throughput", "operations/s", [1.0])
    newer = replace(older, backend="redis")
    assert not any("mp-queue" in row[2] for row in absent(run_of(older)).rows)
    assert any(row[2] == "mp-queue" for row in absent(run_of(newer)).rows)


def test_the_page_says_once_why_several_cells_were_not_measured():
    run = run_of(mem("tupelo-shm", "Null", 1))
    for fill in (10, 20):
        run.remarks.append(
            Remark("mem", "redis", {"fill": fill}, "over budget", "no time was left")
        )
    run.remarks.append(Remark("mem", "redis", {"fill": 30}, "over budget", "it took too long"))
    page = html_page(run, EXPERIMENTS)
    assert "<td>redis<td>fill=10; fill=20<td>over budget<td>no time was left<" in page
    assert "<td>redis<td>fill=30<td>over budget<td>it took too long<" in page


def test_the_quantiles_of_the_table_are_those_of_the_merged_histogram_as_in_the_figure():
    """One repeat of two is slow: the mean of both 99ths is a time that no call took."""
    under = {"bytes": 256, "placement": "apart", "load": "1 000/s"}
    histogram = Histogram()
    histogram.record([1_000_000] * 900 + [50_000_000] * 100)
    run = run_of(
        Measure(
            "rpc", "redis", under, "latency under load", "s", [1e-3, 9e-3],
            histogram=histogram.encoded(),
        ),
        Measure("rpc", "redis", under, "latency under load p99", "s", [1e-3, 50e-3]),
    )  # fmt: skip
    page = markdown(run, EXPERIMENTS, [])
    (row,) = [line for line in page.splitlines() if line.startswith("| redis | - |")]
    assert [cell.strip() for cell in row.split("|")[3:6]] == ["1.00 ms", "50.0 ms", "50.0 ms"]


def test_the_answer_on_filling_has_every_entry_of_every_system():
    """[MEM], figures 1 and 2: a take of 16 KiB is slower beside others, of an Integer it is not."""
    run = run_of(
        *(
            mem(backend, entry, microseconds * factor, fill=fill)
            for backend, microseconds in (("tupelo-shm", 0.5), ("redis", 20.0))
            for entry, slower in (("Integer", 1.0), ("Double 2048", 2.9))
            for fill, factor in ((0, 1.0), (10_000, slower))
        )
    )
    (question,) = [q for q in questions(run, EXPERIMENTS) if "filling" in q.title]
    (table,) = [t for t in question.tables if t.title.startswith("take of every entry")]
    assert table.heads == ("", "Integer", "Double 2048")
    assert [row[0] for row in table.rows] == ["tupelo-shm", "redis"]
    assert all(row[1].endswith("1.00 x") and row[2].endswith(", 2.90 x") for row in table.rows)


def test_the_page_sets_spinning_sides_beside_sleeping_ones_with_their_processor_time():
    cell = {"bytes": 256, "placement": "apart"}
    run = run_of(
        *(
            Measure("rpc", backend, cell, metric, "s", [seconds * factor])
            for backend, factor in (("tupelo-shm", 1), ("tupelo-aio", 9), ("udp-spinning", 4))
            for metric, seconds in (("round trip", 2e-6), ("CPU time of a round trip", 4e-6))
        )
    )
    (question,) = [q for q in questions(run, EXPERIMENTS) if "Spinning" in q.title]
    assert question.tables[0].rows == (
        ("tupelo-shm", "spin, then sleep", "2.00 µs", "4.00 µs", "-", "-"),
        ("tupelo-aio", "sleep", "18.0 µs", "36.0 µs", "-", "-"),
        ("udp-spinning", "spin", "8.00 µs", "16.0 µs", "-", "-"),
    )
