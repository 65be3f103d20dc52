"""What the literature claims of whole programs: [LINDA]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases.skeleton import (
    IMBALANCE,
    KEYED_READING,
    KEYED_WITHDRAWING,
    LOCAL_HIT,
    LOCAL_READING,
    LOCAL_WRITING,
    REMOTE_HIT,
    SEARCH,
    TOTAL,
    VISITED,
)
from tupelo_bench.report.answers.claim import Answer, in_order, not_tested, paired, valued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.answers.claim import Word

UNEVEN_FROM = 1.1  # times the mean: the slowest worker, where the work is uneven
EVER = 1e9
SOURCE = "LINDA"


def of_cases(run: Run) -> Iterator[Answer]:
    """All that `cases` answers."""
    if not run.of("cases"):
        return
    password = {"case": "password"}
    yield in_order(
        "Withdrawing a tuple by a key takes longer than reading it.", SOURCE,
        paired(run, "cases", (KEYED_READING, KEYED_WITHDRAWING), {}, {}),
        figure="key-second-local-reading-by-a-key",
    )  # fmt: skip
    yield in_order(
        "With one worker a search takes as long as a local read.", SOURCE,
        paired(run, "cases", (LOCAL_READING, SEARCH), {**password, "workers": 1},
               {**password, "workers": 1}),
        equal=True, figure="key-second-search",
    )  # fmt: skip
    yield in_order(
        "Local writing takes as long with 15 workers as with one.", SOURCE,
        paired(run, "cases", LOCAL_WRITING, {**password, "workers": 1},
               {**password, "workers": 15}),
        equal=True, figure="key-second-local-writing",
    )  # fmt: skip
    yield in_order(
        "With the key first the password search is faster than with the key second.", SOURCE,
        paired(run, "cases", TOTAL, {**password, "key": "first"}, {**password, "key": "second"}),
        figure="key-second-total",
    )  # fmt: skip
    sorting = {"case": "sorting"}
    yield in_order(
        "With 15 workers sorting is faster than with one.", SOURCE,
        paired(run, "cases", TOTAL, {**sorting, "workers": 15}, {**sorting, "workers": 1}),
        figure="cases-sorting-of",
    )  # fmt: skip
    yield in_order(
        "By success factor a search visits fewer spaces than in turn.", SOURCE,
        paired(run, "cases", VISITED, {"search": "success factor"}, {"search": "round robin"}),
        figure="visited-nodes",
    )  # fmt: skip
    rows = {"case": "matrix rows"}
    yield in_order(
        "The multiplication is faster with the rows of B at one worker (B-1).", SOURCE,
        paired(run, "cases", TOTAL, {**rows, "rows": "B-1"}, {**rows, "rows": "uniform"}),
        figure="by-rows-as-listed-uniform-total",
    )  # fmt: skip
    yield in_order(
        "By blocks the multiplication is faster than by rows.", SOURCE,
        paired(run, "cases", TOTAL, {"case": "matrix blocks", "block": 10},
               {**rows, "rows": "uniform", "search": "round robin"}),
        figure="by-blocks-of-10",
    )  # fmt: skip
    yield valued(
        "The slowest worker searches for longer than the mean of all.", SOURCE,
        list(run.find("cases", IMBALANCE, **rows)), UNEVEN_FROM, EVER,
    )  # fmt: skip
    yield in_order(
        "A read of another's space takes longer than one of the own.", SOURCE,
        paired(run, "cases", (LOCAL_HIT, REMOTE_HIT), {}, {}),
    )  # fmt: skip
    yield _right(run)
    processors = len(run.machine.get("processors", ()))
    yield not_tested(
        "More workers make programs faster, one processor each.", SOURCE,
        f"15 workers share {processors} processors",
    )  # fmt: skip
    yield not_tested("Transports between hosts differ.", SOURCE, "all is on one host")
    yield not_tested("Replicas cost little.", SOURCE, "no system here has replicas")


def _right(run: Run) -> Answer:
    """Whether every result was that of a sequential program."""
    wrong = [remark for remark in run.remarks if remark.why == "wrong result"]
    cells = {(m.backend, *sorted(m.parameters.items())) for m in run.find("cases", TOTAL)}
    claim = "All systems compute what a sequential program computes."
    if not cells:
        return not_tested(claim, SOURCE, "no program was run")
    verdict: Word = "refuted" if wrong else "confirmed"
    return Answer(claim, SOURCE, verdict, f"{len(wrong)} wrong results in {len(cells)} cells")
