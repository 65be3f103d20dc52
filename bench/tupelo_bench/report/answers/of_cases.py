"""What the literature claims of whole programs: [LINDA]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.cases import visits
from tupelo_bench.experiments.cases.skeleton import (
    IMBALANCE,
    KEYED_READING,
    KEYED_WITHDRAWING,
    LOCAL_HIT,
    LOCAL_WRITING,
    REMOTE_HIT,
    REMOTE_READING,
    SEARCH_MEDIAN,
    TOTAL,
    VISITED,
)
from tupelo_bench.harness.sittings import cell_of
from tupelo_bench.report.answers.claim import (
    ALIKE,
    Answer,
    as_long,
    at_most,
    in_order,
    not_tested,
    outcome,
    paired,
    valued,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.answers.claim import Pair, Word

UNEVEN = 1.1  # times the mean: the slowest worker, where the work is uneven
SOURCE = "LINDA"
SOME, MANY = 5, 15  # workers
OCEAN, GIGASPACES_S = 1_200, 60e-6  # the size that is printed, and the longest of its remote reads
ROWS = {"case": "matrix rows"}
LEARNED, IN_TURN = {"search": "success factor"}, {"search": "round robin"}


def of_cases(run: Run) -> Iterator[Answer]:
    """All that `cases` answers."""
    if not run.of("cases"):
        return
    yield from _of_password(run)
    yield from _of_searches(run)
    yield from _of_matrices(run)
    yield valued(
        f"The slowest worker searches for more than {UNEVEN} times the mean of all.", SOURCE,
        list(run.find("cases", IMBALANCE, **ROWS)), UNEVEN, math.inf,
    )  # fmt: skip
    both = paired(run, "cases", IMBALANCE, IN_TURN, LEARNED)
    yield in_order(
        "Of two orders of search, the one by which the slowest worker searches longer against the"
        " mean makes the program slower.", SOURCE, _by_imbalance(run, both),
        note=f"of {len(both)} cells those whose slowest workers differ",
    )  # fmt: skip
    yield in_order(
        "A read of another's space takes longer than one of the own.", SOURCE,
        paired(run, "cases", (LOCAL_HIT, REMOTE_HIT), {}, {}),
    )  # fmt: skip
    yield _right(run)
    yield at_most(
        f"With {MANY} workers no program is faster than with {SOME}.", SOURCE,
        paired(run, "cases", TOTAL, {"workers": SOME}, {"workers": MANY}), ALIKE,
        note=_shared(run),
    )  # fmt: skip
    for transport in ("tupelo-unix", "tupelo-tcp"):
        yield in_order(
            f"A remote read takes longer through a transport ({transport}) than in the memory of"
            " one host.", SOURCE, _by_transport(run, transport),
            figure="by-transport-remote-reading",
        )  # fmt: skip
    yield valued(
        "A remote read in the ocean model takes at most 60 µs, as GigaSpaces' (printed: 19 to 60).",
        SOURCE,
        list(run.find("cases", REMOTE_READING, case="ocean", size=OCEAN, search="round robin")),
        0.0, GIGASPACES_S, figure="1-200-round-robin-remote-reading", note=_shared(run),
    )  # fmt: skip
    yield not_tested("A network is faster than containers.", SOURCE, "all is on one host")
    yield not_tested(
        "A store that is spread over machines keeps up with one in one place.", SOURCE,
        "all is on one host",
    )  # fmt: skip
    yield not_tested(
        "Fault tolerance, as by replicas, costs little.", SOURCE,
        "no system here has replicas; what crash safety costs on one host stands in"
        " docs/benchmarks.md",
    )  # fmt: skip


def _of_password(run: Run) -> Iterator[Answer]:
    """Reading, withdrawing and writing of the own space, by the numbers of workers."""
    password = {"case": "password"}
    alone = {**password, "workers": 1}
    yield in_order(
        "Withdrawing a tuple by a key takes longer than reading it.", SOURCE,
        paired(run, "cases", (KEYED_READING, KEYED_WITHDRAWING), {}, {}),
        figure="key-second-local-reading-by-a-key",
    )  # fmt: skip
    yield as_long(
        "With one worker a search takes as long as a local read.", SOURCE,
        paired(run, "cases", (KEYED_READING, SEARCH_MEDIAN), alone, alone),
        figure="key-second-search",
        note="of the searches the median, since the first of them build the index",
    )  # fmt: skip
    yield at_most(
        f"Local writing takes no longer with {MANY} workers than with one.", SOURCE,
        paired(run, "cases", LOCAL_WRITING, {**password, "workers": MANY}, alone), ALIKE,
        figure="key-second-local-writing", note=_shared(run),
    )  # fmt: skip
    yield in_order(
        "With the key first the password search is faster than with the key second.", SOURCE,
        paired(run, "cases", TOTAL, {**password, "key": "first"}, {**password, "key": "second"}),
        figure="key-second-total",
    )  # fmt: skip
    sorting = {"case": "sorting"}
    yield in_order(
        f"With {MANY} workers sorting is faster than with one.", SOURCE,
        paired(run, "cases", TOTAL, {**sorting, "workers": MANY}, {**sorting, "workers": 1}),
        figure="cases-sorting-of", note=_shared(run),
    )  # fmt: skip


def _of_searches(run: Run) -> Iterator[Answer]:
    """The success factor, where it is to help and where it is not."""
    b_1, uniform = {**ROWS, "rows": "B-1"}, {**ROWS, "rows": "uniform"}
    spread = {"case": visits.CASE}
    yield in_order(
        "By success factor a search visits fewer spaces than in turn, where most of what it looks"
        " for is in few spaces (ocean model, B-1, two neighbours).", SOURCE,
        [
            pair
            for of in ({"case": "ocean"}, b_1, {**spread, "tuples": "at two neighbours"})
            for pair in paired(run, "cases", VISITED, {**of, **LEARNED}, {**of, **IN_TURN})
        ],
        figure="visited-nodes",
    )  # fmt: skip
    yield at_most(
        "By success factor a search visits no fewer spaces than in turn, where what it looks for is"
        " spread uniformly.", SOURCE,
        [
            pair
            for of in (uniform, {**spread, "tuples": "everywhere"})
            for pair in paired(run, "cases", VISITED, {**of, **IN_TURN}, {**of, **LEARNED})
        ],
        ALIKE,
        figure="by-rows-as-listed-uniform-visited-nodes",
    )  # fmt: skip
    yield in_order(
        "By success factor a search visits fewer spaces with B-1 than with uniform rows.", SOURCE,
        paired(run, "cases", VISITED, {**b_1, **LEARNED}, {**uniform, **LEARNED}),
        figure="by-rows-as-listed-uniform-visited-nodes",
    )  # fmt: skip


def _of_matrices(run: Run) -> Iterator[Answer]:
    """B-1 against uniform rows, and blocks against rows."""
    uniform = {**ROWS, "rows": "uniform"}
    yield in_order(
        "The multiplication is faster with all rows of B at one worker (B-1) than with uniform"
        " rows.", SOURCE,
        paired(run, "cases", TOTAL, {**ROWS, "rows": "B-1"}, uniform),
        figure="by-rows-as-listed-uniform-total",
    )  # fmt: skip
    for block in (10, 5):
        yield in_order(
            f"By blocks of {block} x {block} the multiplication is faster than by rows.", SOURCE,
            paired(run, "cases", TOTAL, {"case": "matrix blocks", "block": block},
                   {**uniform, "search": "round robin"}),
            figure=f"by-blocks-of-{block}-x",
        )  # fmt: skip


def _by_imbalance(run: Run, both: list[Pair]) -> list[Pair]:
    """The totals of one program by two orders of search, first by the more even one."""
    found = []
    for pair in both:
        apart = outcome(pair)
        if apart not in ("holds", "reverse"):
            continue
        even, uneven = pair if apart == "holds" else reversed(pair)
        less = run.find_one("cases", TOTAL, even.backend, **even.parameters)
        more = run.find_one("cases", TOTAL, uneven.backend, **uneven.parameters)
        if less is not None and more is not None:
            found.append((less, more))
    return found


def _by_transport(run: Run, transport: str) -> list[Pair]:
    """Remote reads in shared memory, and those of the same program through a transport."""
    found = []
    for more in run.find("cases", REMOTE_READING):
        if more.backend == transport:
            less = run.find_one("cases", REMOTE_READING, OURS, **more.parameters)
            if less is not None:
                found.append((less, more))
    return found


def _shared(run: Run) -> str:
    """What a reader has to know of times with many workers."""
    processors = len(run.machine.get("processors", ()))
    return f"{MANY} workers share {processors} processors here" if processors < MANY else ""


def _right(run: Run) -> Answer:
    """Whether every result was that of a sequential program."""
    cells = {cell_of(measure) for measure in run.find("cases", TOTAL)}
    # A cell that was wrong has no measure, unless it was right in another sitting.
    wrong = {
        cell_of(remark)
        for remark in run.remarks
        if remark.experiment == "cases" and remark.why == "wrong result"
    }
    claim = "All systems compute what a sequential program computes."
    if not cells | wrong:
        return not_tested(claim, SOURCE, "no program was run")
    verdict: Word = "refuted" if wrong else "confirmed"
    evidence = f"wrong results in {len(wrong)} of {len(cells | wrong)} cells"
    return Answer(claim, SOURCE, verdict, evidence)
