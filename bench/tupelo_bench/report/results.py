"""The results as a page of Markdown (`README.md` beside `run.json`), made from the record alone.

So no figure in it can differ from the run: what people write about the results links to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.mem.client import BRIDGE
from tupelo_bench.experiments.rpc.load import OWN_LOAD, RATE_REACHED, SAME_LOAD, UNDER_LOAD
from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.harness.profiler import NS_PER_S
from tupelo_bench.harness.quantiles import QUANTILES
from tupelo_bench.presentation.tables import Table, machine, mean_of, repeats
from tupelo_bench.presentation.units import quantity
from tupelo_bench.report import drawing
from tupelo_bench.report.absent import absent
from tupelo_bench.report.answers import HOW as ANSWERED
from tupelo_bench.report.answers import SOURCES, answers
from tupelo_bench.report.faster import faster_peers, wins_and_losses
from tupelo_bench.report.questions import questions
from tupelo_bench.report.questions.grids import text
from tupelo_bench.report.short import in_short
from tupelo_bench.report.targets import targets
from tupelo_bench.report.undrawn import undrawn
from tupelo_bench.report.warm import HOW as WARMED
from tupelo_bench.report.warm import warmed
from tupelo_bench.report.words import HOW_DRAWN, words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.report.questions.question import Key

HEAD = """# Results

Made by `tupelo bench` from [run.json](run.json), no figure is typed by hand.
[The page](report.html) has all figures, and all means with their standard deviations;
[run.csv](run.csv) has a line per measure. What a cell is, and other words, stands [below](#words);
what it all means, in `docs/evaluation.md` of Tupelo.
"""
SIGNS = """A time is a mean. In brackets stand the least and the greatest mean of a repeat. Where
these are far apart, the repeats are of two kinds, and the mean describes neither: a cache line goes
from one processor to the other in 50 ns in one process, and in 200 in the next. The CSV has the
least and the greatest of all samples.

A tilde before a ratio says that the two do not differ significantly (Mann-Whitney over the repeats,
0.05), or that they differ the other way round than their means. A question mark says that there are
too few repeats to tell. Of a hundred comparisons of equal systems some five differ by chance.
"""


def markdown(
    run: Run, experiments: Sequence[Experiment], figures: Sequence[tuple[str, str]]
) -> str:
    """The page; `figures` are those that were drawn: title and file."""
    parts = [HEAD, *_to_know(run), *_summary(run, figures), *_run(run), SIGNS]
    verdicts = targets(run)
    if verdicts.rows and not run.quick:
        parts += ["## What it was to show", table(verdicts)]
    asked = questions(run, experiments)
    if asked:
        parts.append("## The questions of the literature")
    for question in asked:
        parts += [f"### {question.title}", question.how]
        parts += [f"{each.title}:\n\n{table(each)}" for each in question.tables]
    parts += _under_load(run)
    shown = {key for question in asked for key in question.printed}
    parts += _printed(run, experiments, shown)
    parts += ["## Where a peer is faster", _faster(run)]
    parts += ["## Figures", HOW_DRAWN]
    parts += [f"![{title}]({file})" for title, file in figures]
    parts += _undrawn(run, experiments)
    parts += ["## Not measured", _not_measured(run), *_absent(run)]
    parts += ["## How each is driven", _driven(run), *_warmed(run), *_bridges(run)]
    parts += ["## Words", table(words(run))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _to_know(run: Run) -> Iterator[str]:
    if run.quick:
        yield "**A quick run: no figure here is a result.**"
    if run.caveats:
        yield "**To know before reading:**"
        yield bullets(run.caveats)


def _summary(run: Run, figures: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A screen of what the record says, before any detail."""
    if run.quick:
        return
    found = answers(run, [file for _, file in figures])
    sentences, headlines = in_short(run, [verdict for _, _, verdict, *_ in found.rows])
    yield f"## {headlines.title}"
    yield bullets(sentences)
    if headlines.rows:
        yield table(headlines)
    if found.rows:
        yield f"## {found.title}"
        yield bullets(ANSWERED)
        yield f"The publications: {SOURCES}."
        yield table(found)
    wins, losses = wins_and_losses(run)
    for each in (losses, wins):
        if each.rows:
            yield f"## {each.title}"
            yield table(each)


def bullets(points: Iterable[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {point}" for point in points)


def table(of: Table) -> str:
    """A table in Markdown; a column of words goes from the left, one of figures from the right."""
    words = [_is_words(column) for column in zip(*of.rows, strict=True)]
    rules = ["---" if is_words else "---:" for is_words in words] or ["---"] * len(of.heads)
    lines = [of.heads, ("---", *rules[1:]), *of.rows]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)


def _is_words(column: Sequence[str]) -> bool:
    """Whether most of its cells begin with a letter."""
    begin = [cell.lstrip("*[(`")[:1].isalpha() for cell in column if cell not in ("", "-")]
    return sum(begin) > len(begin) / 2


def _escaped(cell: str) -> str:
    """A cell as one line that shows what it says, also if that is the traceback of a failure."""
    line = " / ".join(part.strip() for part in cell.splitlines() if part.strip())
    return line.replace("<", "&lt;").replace("|", "\\|").replace("~", "\\~")


def _run(run: Run) -> Iterator[str]:
    yield "## The run"
    if run.sittings:
        yield f"Made in {len(run.sittings)} sittings:"
        yield "\n".join(f"- {sitting}" for sitting in run.sittings)
    yield (
        f"`{' '.join(run.command)}`, begun {run.begin}, {run.duration_s / 60:.0f} minutes, seed"
        f" {run.seed}."
    )
    yield table(machine(run))
    places = tuple((name, "; ".join(where)) for name, where in run.placements.items())
    yield table(Table("", ("experiment", "processors"), places))
    yardsticks = tuple(
        (
            f"{m.metric} {told(m.parameters)}".rstrip(),
            *(quantity(value, m.unit) for value in (m.summary.mean, m.summary.median)),
            *(quantity(value, m.unit) for value in (m.summary.least, m.summary.greatest)),
        )
        for m in run.of("yardsticks")
    )
    yield table(Table("", ("yardstick", "mean", "median", "least", "greatest"), yardsticks))
    yield table(repeats(run))


def _under_load(run: Run) -> Iterator[str]:
    """The quantiles of the open loops, the peers with the shortest tail first."""
    first = True
    for where in PLACEMENTS:
        for load in (OWN_LOAD, SAME_LOAD):
            fixed = {"placement": where, "load": load}
            rates = {m.backend: m for m in run.find("rpc", RATE_REACHED, **fixed)}
            merged = {
                m.backend: Histogram.decoded(m.histogram)
                for m in run.find("rpc", UNDER_LOAD, **fixed)
                if m.histogram is not None
            }
            tail = sorted(merged, key=lambda backend: merged[backend].quantile(0.99))
            if not tail:
                continue
            if first:
                yield "## Latency under load"
                yield (
                    "A call of 256 bytes in an open loop, counted from when it was due. Quantiles"
                    " of all calls of all repeats, from their merged histograms, as in the figures."
                )
                first = False
            rows = tuple(
                (
                    backend,
                    text(rates.get(backend)),
                    *(
                        quantity(merged[backend].quantile(share) / NS_PER_S, "s")
                        for _, share in QUANTILES
                    ),
                )
                for backend in tail
            )
            heads = ("", "requests answered", *(name for name, _ in QUANTILES))
            yield f"Rate: {load}; client and server {where}:\n\n{table(Table('', heads, rows))}"


def _printed(run: Run, experiments: Sequence[Experiment], shown: Collection[Key]) -> Iterator[str]:
    """What the publications print, beside ours, where it does not stand above."""
    found = [
        (experiment, printed)
        for experiment in experiments
        if run.of(experiment.name)
        for printed in experiment.printed(run)
        if (experiment.name, printed.key) not in shown
    ]
    if found:
        yield "## As printed, and here"
    for experiment, printed in found:
        yield f"### {printed.title}"
        yield (
            f"After {experiment.source}. The first {printed.columns_printed} columns are as"
            " printed, on the machines of their time."
        )
        yield table(Table(printed.title, printed.heads, printed.rows))


def _faster(run: Run) -> str:
    text, found = faster_peers(run)
    return f"{text}\n\n{table(found)}" if found.rows else text


def _undrawn(run: Run, experiments: Sequence[Experiment]) -> Iterator[str]:
    if lacking := drawing.missing():
        yield f"None is drawn: {lacking}."
    found = undrawn(run, experiments)
    if found.rows:
        yield f"### {found.title}"
        yield table(found)


def _not_measured(run: Run) -> str:
    """A row per experiment, backend and reason, with the first of the cells."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for remark in run.remarks:
        cell = f"{told(remark.parameters)}: {remark.text}" if remark.parameters else remark.text
        grouped.setdefault((remark.experiment, remark.backend, remark.why), []).append(cell)
    if not grouped:
        return "Nothing was left out."
    rows = tuple((*key, str(len(cells)), cells[0]) for key, cells in grouped.items())
    return table(Table("", ("experiment", "backend", "why", "cells", "the first of them"), rows))


def _absent(run: Run) -> Iterator[str]:
    found = absent(run)
    if found.rows:
        yield f"### {found.title}"
        yield table(found)


def _driven(run: Run) -> str:
    rows = tuple((name, run.versions.get(name, ""), how) for name, how in run.notes.items())
    return table(Table("", ("", "version", ""), rows))


def _warmed(run: Run) -> Iterator[str]:
    """Which systems that compile became warm, and when."""
    found = warmed(run)
    if found.rows:
        yield f"### {found.title}"
        yield WARMED
        yield table(found)


def _bridges(run: Run) -> Iterator[str]:
    """What the way into another language costs, by the entry with which it costs least and most."""
    by_backend: dict[str, list[Measure]] = {}
    for measure in run.of("mem"):
        if measure.metric == BRIDGE:
            by_backend.setdefault(measure.backend, []).append(measure)
    if not by_backend:
        return
    yield "### The way into another language"
    yield (
        "What it takes to go there from Python and back with an entry, without an operation. It is"
        " in no time of `mem`, where the loop is over there; in `settle` one way has a hundred"
        " objects; in the other experiments it is a part of each operation of these systems."
    )
    rows = []
    for backend, measures in by_backend.items():
        ordered = sorted(measures, key=lambda measure: measure.summary.mean)
        ends = (ordered[0], ordered[-1])
        rows.append((backend, *(f"{mean_of(m)}, {m.parameters['entry']}" for m in ends)))
    yield table(Table("", ("", "least", "most"), tuple(rows)))
