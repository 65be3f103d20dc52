"""What was to be reached, and where a peer is faster: also where that is not in our favour."""

import pytest
from records import SMALL, mem, run_of, total

from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.experiments.settle import CLIENTS_TOGETHER
from tupelo_bench.harness.record import Measure, Remark
from tupelo_bench.report.beside import beside_us
from tupelo_bench.report.faster import faster_peers
from tupelo_bench.report.page import page as html_page
from tupelo_bench.report.questions import questions
from tupelo_bench.report.results import markdown
from tupelo_bench.report.targets import targets
from tupelo_bench.report.targets.rpc import calls


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


def test_a_ratio_of_means_is_no_verdict_where_the_repeats_can_not_tell():
    run = run_of(
        *(
            mem(backend, entry, 1 if backend == "tupelo-shm" else 500, placement, metric=metric)
            for metric in ("put", "take")
            for entry in SMALL
            for backend in ("tupelo-shm", "redis")
            for placement in ("apart", "together")
        )
    )
    assert verdict(run, "up to 256 bytes, against redis")[3] == "yes"
    for measure in run.measures:
        if (
            measure.backend == "redis"
            and measure.metric == "put"
            and measure.parameters["entry"] == "Null"
        ):
            # 250 times as long in the mean, and half of the repeats below a hundred.
            measure.samples[:] = [90e-6, 410e-6] * 5
    _, _, measured, reached = verdict(run, "up to 256 bytes, against redis")
    assert measured == "249 x at least (put Null, redis apart); 1 can not be told"
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
    _, _, measured, reached = verdict(run, "bytes, against an empty one")
    assert measured == "1.60 x (take Integer, 1 000 000 there); 1 of 2 within it"
    assert reached == "**no**"


def test_of_fuller_spaces_the_worst_entry_decides():
    run = run_of(
        *(mem("tupelo-shm", entry, 1) for entry in ("Integer", "Double 32", "Double 2048")),
        mem("tupelo-shm", "Integer", 1.1, fill=1_000_000),
        mem("tupelo-shm", "Double 32", 1.4, fill=1_000_000),
        mem("tupelo-shm", "Double 2048", 2, fill=10_000),  # asked of small tuples only
    )
    _, _, measured, reached = verdict(run, "bytes, against an empty one")
    assert measured == "1.40 x (take Double 32, 1 000 000 there); 2 of 2 within it"
    assert reached == "yes"
    for entry in ("Null", "Double 2048"):
        cell = {"entry": entry, "fill": 10_000, "placement": "apart"}
        run.remarks.append(Remark("mem", "tupelo-shm", cell, "over budget", ""))
    _, _, measured, reached = verdict(run, "bytes, against an empty one")
    assert measured.endswith("2 of 2 within it; 2 not measured")
    assert reached == "too little to tell"


def test_what_keys_add_stands_beside_what_they_add_to_a_dictionary():
    def dictionary(metric, seconds, **parameters):
        return Measure("yardsticks", "machine", parameters, metric, "s", [seconds])

    keys = [mem("tupelo-shm", "key first", 1), mem("tupelo-shm", "key first", 2, fill=1_000_000)]
    _, _, measured, reached = verdict(run_of(*keys), "a space with keys")
    assert measured == "2.00 x (take key first, 1 000 000 there)"
    assert reached == "**no**"
    run = run_of(
        *keys,
        dictionary("dict insert by key", 1, fill=0),
        dictionary("dict insert by key", 3, fill=1_000_000),
        dictionary("dict insert by key", 9, fill=1_000_000, at="the end"),
        dictionary("dict pop by key", 1, fill=0),
        dictionary("dict pop by key", 8, fill=1_000_000),
        dictionary("dict pop by key", 80, fill=1_000_000, of="another machine"),
    )
    assert verdict(run, "a space with keys")[2] == (
        f"{measured}; a private dictionary of Python: insert 3.00 x, pop 8.00 x"
    )


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
    assert text.startswith("In 1 of 1 comparisons the mean of a peer is better than ours: in 1")
    assert tuple(row[:4] for row in listed.rows) == (
        ("cases case=sorting size=7 workers=5", "total", "redis", "2.00 x"),
    )


def test_a_peer_that_is_faster_but_not_significantly_misses_no_target_but_is_listed():
    cell = {"case": "sorting", "size": 7, "workers": 5}
    ours = Measure("cases", "tupelo-shm", cell, "total", "s", [1.0, 2.0, 3.0, 4.0])
    theirs = Measure("cases", "redis", cell, "total", "s", [1.1, 1.9, 2.9, 3.9])
    run = run_of(ours, theirs)
    assert verdict(run, "significantly faster in a case")[3] == "yes"
    text, listed = faster_peers(run)
    assert "in 0 significantly, in 1 not (a tilde), in 0 there are too few" in text
    (row,) = listed.rows
    assert row[3] == "~1.02 x"
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
    assert tuple(row[:4] for row in listed.rows) == (
        ("cases case=sorting size=7 workers=5", "total", "redis", "?1.91 x"),
    )


@pytest.mark.parametrize(
    "metric", ["remote writing", "local writing", "local reading", "remote reading", "search"]
)
def test_a_peer_whose_operation_is_faster_in_a_whole_program_is_listed(metric):
    cell = {"case": "sorting", "size": 7, "workers": 5}
    slow, fast = ([seconds + n / 1e3 for n in range(4)] for seconds in (2.0, 1.0))
    ours = Measure("cases", "tupelo-shm", cell, metric, "s", slow)
    theirs = Measure("cases", "mp-queue", cell, metric, "s", fast)
    text, listed = faster_peers(run_of(ours, theirs))
    assert text.startswith("In 1 of 1 comparisons the mean of a peer is better than ours: in 1")
    assert tuple(row[:4] for row in listed.rows) == (
        ("cases case=sorting size=7 workers=5", metric, "mp-queue", "2.00 x"),
    )


@pytest.mark.parametrize(
    ("series", "rows"), [("paper", 1), ("all at once", 0), ("all at once, aged", 0)]
)
def test_response_times_are_compared_where_the_throughput_does_not_say_the_same(series, rows):
    ours, theirs = (
        Measure("settle", backend, {"series": series}, "response time", "s", [seconds] * 4)
        for backend, seconds in (("tupelo-shm", 2.0), ("redis", 1.0))
    )
    assert len(faster_peers(run_of(ours, theirs))[1].rows) == rows


@pytest.mark.parametrize("load", ["1 000/s", "half of its own"])
@pytest.mark.parametrize("quantile", ["p50", "p99", "p99.9"])
def test_a_peer_that_is_faster_under_any_load_is_listed(load, quantile):
    """Also at half of its own rate, which is not the same work: there is where we lose."""
    metric = f"latency under load {quantile}"
    ours, theirs = (
        Measure("rpc", backend, {"load": load}, metric, "s", [seconds + n / 1e3 for n in range(4)])
        for backend, seconds in (("tupelo-shm", 2.0), ("udp", 1.0))
    )
    _, listed = faster_peers(run_of(ours, theirs))
    assert [row[1:4] for row in listed.rows] == [(metric, "udp", "2.00 x")]


def test_memory_is_exact_so_that_one_sample_suffices():
    ours, theirs = (
        Measure("mem", backend, {}, "memory per tuple", "bytes", [size_bytes])
        for backend, size_bytes in (("tupelo-shm", 131.0), ("redis", 65.5))
    )
    text, listed = faster_peers(run_of(ours, theirs))
    assert listed.rows[0][1:4] == ("memory per tuple", "redis", "2.00 x")
    assert ": in 1 significantly" in text


@pytest.mark.parametrize(
    ("experiment", "metric", "ours", "theirs", "rows"),
    [
        ("settle", "throughput", 1.0, 2.0, 1),
        ("settle", "throughput", 2.0, 1.0, 0),
        ("mem", "memory per tuple", 131.0, 28.0, 1),
        ("mem", "memory per tuple", 28.0, 131.0, 0),
    ],
)
def test_a_peer_with_more_throughput_or_less_memory_is_listed(
    experiment, metric, ours, theirs, rows
):
    cell = {"series": "all at once"} if experiment == "settle" else {}
    both = (("tupelo-shm", ours), ("redis", theirs))
    run = run_of(
        *(Measure(experiment, backend, cell, metric, "", [value] * 4) for backend, value in both)
    )
    assert len(faster_peers(run)[1].rows) == rows


def test_where_coordination_is_much_we_have_to_be_faster_than_each():
    much, little = ({"case": "ocean", "workers": n} for n in (5, 15))
    run = run_of(
        *total("tupelo-shm", 1.0, 0.1, **much), *total("redis", 0.9, 0.3, **much),
        *total("tupelo-shm", 1.0, 0.1, **little), *total("redis", 0.9, 0.1, **little),
    )  # fmt: skip
    _, _, measured, reached = verdict(run, "is coordination")
    assert measured == "1 of 1 comparisons; redis case=ocean workers=5"
    assert reached == "**no**"


def much_coordinated(ours, theirs):
    cell = {"case": "ocean", "workers": 5}
    return run_of(
        Measure("cases", "tupelo-shm", cell, "total", "s", ours),
        Measure("cases", "redis", cell, "total", "s", theirs),
        Measure("cases", "redis", cell, "coordination", "", [0.9]),
    )


@pytest.mark.parametrize("seconds", [[9.0, 9.1, 9.2], [0.1, 0.2, 0.3]])
def test_where_coordination_is_much_too_few_repeats_tell_nothing(seconds):
    _, _, measured, reached = verdict(much_coordinated([1.0, 2.0, 3.0], seconds), "coordination")
    assert measured == "0 of 1 comparisons; 1 can not be told"
    assert reached == "too little to tell"


@pytest.mark.parametrize("seconds", [[0.9, 2.1, 2.9, 4.2], [1.1, 1.9, 2.9, 3.9]])
def test_where_coordination_is_much_a_tie_is_not_faster(seconds):
    run = much_coordinated([1.0, 2.0, 3.0, 4.0], seconds)
    assert verdict(run, "is coordination")[3] == "**no**"


STEADY, FASTER_BUT_FOR_ONE = (
    [1.0 + n / 100 for n in range(10)],
    [*(0.7 + n / 100 for n in range(9)), 20.0],
)


def test_one_repeat_that_stood_still_turns_no_comparison_around():
    # The test says that nine of ten are faster, the means that they are slower.
    run = much_coordinated(STEADY, FASTER_BUT_FOR_ONE)
    words = ("significantly faster in a case", "is coordination")
    assert {verdict(run, each)[3] for each in words} == {"**no**"}
    text, listed = faster_peers(run)
    assert "In 1 it is so by the test, and the reverse by the mean (below 1 x)." in text
    (row,) = listed.rows
    assert row[3] == "0.39 x"
    run = much_coordinated(FASTER_BUT_FOR_ONE, STEADY)
    assert {verdict(run, each)[3] for each in words} == {"yes"}
    (row,) = faster_peers(run)[1].rows
    assert row[3] == "~2.55 x"


@pytest.mark.parametrize("fill", [500, 100_000])
def test_a_space_that_was_never_filled_by_a_million_is_not_said_to_slow_nobody_down(fill):
    run = run_of(mem("tupelo-shm", "Integer", 1), mem("tupelo-shm", "Integer", 1.1, fill=fill))
    _, _, measured, reached = verdict(run, "bytes, against an empty one")
    assert measured.endswith("; 1 not measured")
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


def throughput(kind, clients, repeats):
    parameters = {"series": "all at once", "entry": kind, "clients": clients}
    return Measure("settle", "tupelo-shm", parameters, "throughput", "operations/s", repeats)


def close_to(mean):
    return [mean * (1 + n / 1_000) for n in range(-2, 3)]


@pytest.mark.parametrize(
    ("curve", "measured", "reached"),
    [
        (
            {1: 50.0, 2: 60.0, 4: 80.0, 8: 110.0, 14: 90.0, 22: 86.9},
            "79%: 86.9 operations/s (86.7 - 87.1), against 110 operations/s",
            "**no**",
        ),
        (
            {1: 50.0, 2: 60.0, 4: 80.0, 8: 110.0, 14: 90.0, 22: 89.1},
            "81%: 89.1 operations/s (88.9 - 89.3), against 110 operations/s",
            "yes",
        ),
        (
            {1: 50.0, 2: 60.0, 4: 80.0, 8: 90.0, 22: 60.0},
            (
                "67%: 60.0 operations/s (59.9 - 60.1), against 90.0 operations/s (89.8 - 90.2)"
                "; 5 of 6 points, without 14"
            ),
            "**no**",
        ),
        (
            {22: 81.0},
            "100%: 81.0 operations/s (80.8 - 81.2); 1 of 6 points, without 1, 2, 4, 8, 14",
            "too little to tell",
        ),
        (
            {2: 60.0, 8: 100.0},
            "with 8 clients at most; 2 of 6 points, without 1, 4, 14, 22",
            "too little to tell",
        ),
    ],
)
def test_throughput_with_most_clients_is_a_share_of_the_best(curve, measured, reached):
    run = run_of(*(throughput("Null", q, close_to(mean)) for q, mean in curve.items()))
    assert verdict(run, "22 clients")[2:] == (measured, reached)


def test_each_kind_of_entry_that_was_measured_has_its_own_share():
    run = run_of(
        *(
            throughput(kind, q, close_to(mean))
            for kind, last in (("Null", 90.0), ("File", 70.0))
            for q, mean in zip(CLIENTS_TOGETHER, (50.0, 60.0, 80.0, 100.0, 95.0, last), strict=True)
        )
    )
    _, _, measured, reached = verdict(run, "maximum, File")
    assert measured.startswith("70%: ")
    assert reached == "**no**"
    of_null = next(row for row in targets(run).rows if row[0].endswith("maximum"))
    assert of_null[2].startswith("90%: ")
    assert of_null[3] == "yes"


@pytest.mark.parametrize("last", [[2.74, 4.0, 4.9, 5.6, 6.18], [2.0, 2.1]])
def test_repeats_that_are_far_apart_or_few_tell_nothing_of_a_share(last):
    others = [3.62, 4.3, 5.1, 5.7, 6.21]
    run = run_of(
        *(throughput("Null", q, others) for q in CLIENTS_TOGETHER[:-1]),
        throughput("Null", 22, last),
    )
    _, _, measured, reached = verdict(run, "22 clients")
    assert measured.endswith("; beside 5 of 5 points the repeats can not tell")
    assert reached == "too little to tell"


FIVE = [1.0, 1.1, 1.2, 1.3, 1.4]
TEN = [1.0 + n / 100 for n in range(10)]
SLOWER_IN_ONE = [*(1.1 + n / 100 for n in range(9)), 20.0]


@pytest.mark.parametrize(
    ("empty", "full", "told", "reached"),
    [
        (FIVE, [1.2, 1.4, 1.9, 2.2, 2.5], "1.53 x (%s); 1 can not be told", "too little to tell"),
        (FIVE, [1.2, 1.4, 1.9], "1.25 x (%s); 1 can not be told", "too little to tell"),
        (TEN, SLOWER_IN_ONE, "2.90 x (%s)", "yes"),
        (TEN, [2 * each for each in TEN], "2.00 x (%s)", "**no**"),
    ],
)
def test_a_ratio_of_means_decides_nothing_that_their_repeats_do_not(empty, full, told, reached):
    cells = ((0, empty), (1_000_000, full))
    run = run_of(
        *(
            Measure(
                "mem", "tupelo-shm", {"entry": "Integer", "fill": fill, "placement": "apart"},
                "take", "s", repeats,
            )
            for fill, repeats in cells
        )
    )  # fmt: skip
    _, _, measured, word = verdict(run, "bytes, against an empty one")
    assert measured == told.replace("%s", "take Integer, 1 000 000 there")
    assert word == reached


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


def test_in_mem_a_peer_stands_beside_us_at_its_better_placement():
    run = run_of(
        mem("tupelo-shm", "Null", 1.0),
        mem("redis", "Null", 70.0),
        mem("redis", "Null", 25.0, "together"),
        mem("redis", "Integer", 30.0, "together"),
    )
    ((ours, theirs),) = beside_us(run, "mem", "take")
    assert ours.backend == "tupelo-shm"
    assert theirs.parameters == {"entry": "Null", "fill": 0, "placement": "together"}


@pytest.mark.parametrize(
    ("grpc", "reached"),
    [([2.0, 2.1, 2.2, 2.3], True), ([1.0, 1.1, 1.2, 9.0], False), ([2.0, 2.1], None)],
)
def test_a_round_trip_is_below_anothers_only_where_that_is_no_chance(grpc, reached):
    parameters = {"bytes": 256, "placement": "apart"}
    run = run_of(
        Measure("rpc", "tupelo-shm", parameters, "round trip", "s", [1.01, 1.11, 1.21, 1.31]),
        Measure("rpc", "grpc", parameters, "round trip", "s", grpc),
    )
    found = [each for each in calls(run) if "apart, against grpc" in each.what]
    assert [each.reached for each in found] == [reached]
