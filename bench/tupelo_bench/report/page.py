"""The page of a run: an HTML file that needs no network and no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.parameters import told
from tupelo_bench.presentation.tables import machine, repeats, tables
from tupelo_bench.report import drawing
from tupelo_bench.report.absent import absent
from tupelo_bench.report.answers import HOW as ANSWERED
from tupelo_bench.report.answers import SOURCES, answers
from tupelo_bench.report.deviations import EXPLAINED, deviations
from tupelo_bench.report.faster import faster_peers, wins_and_losses
from tupelo_bench.report.questions import questions
from tupelo_bench.report.short import in_short
from tupelo_bench.report.targets import targets
from tupelo_bench.report.undrawn import undrawn
from tupelo_bench.report.words import HOW_DRAWN, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run
    from tupelo_bench.presentation.figure import Figure
    from tupelo_bench.presentation.printed import Printed

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff;
  max-width: 75rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { margin-top: 3rem; border-bottom: 2px solid #1c1c1c; padding-bottom: .2rem; }
h3 { margin: 1.6rem 0 .3rem; font-size: 1rem; }
p { max-width: 48rem; }
.question { font-style: italic; }
.source, .small { color: #555; font-size: .87rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .18rem .7rem .18rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #e4e4e4; }
th:first-child, td:first-child { text-align: left; }
.words td { text-align: left; white-space: normal; }
thead th { border-bottom: 1.5px solid #777; }
td.theirs { color: #555; background: #f6f6f6; }
figure { margin: 1rem 0; display: inline-block; width: 36rem; max-width: 100%;
  vertical-align: top; }
figure img, figure svg { width: 100%; height: auto; }
details { margin: .8rem 0; }
summary { cursor: pointer; }
nav a { margin-right: 1rem; }
"""


def beside(figure: Figure) -> str:
    """A figure that lies in the folder `figures` beside the page."""
    alt = escape(figure.title)
    return f'<img src="figures/{figure.name}.svg" alt="{alt}" loading="lazy">'


def page(
    run: Run, experiments: Sequence[Experiment], picture: Callable[[Figure], str] = drawing.svg
) -> str:
    """The text of the HTML file; its figures are in it, or as `picture` has them."""
    measured = [experiment for experiment in experiments if run.of(experiment.name)]
    links = "".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e in measured)
    warning = ", <b>quick sizes: no figure here is a result</b>" if run.quick else ""
    about = (
        f"<code>{escape(' '.join(run.command))}</code>, {escape(run.begin)},"
        f" {run.duration_s / 60:.1f} minutes, seed {run.seed}{warning}"
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>tupelo bench, {escape(run.begin)}</title><style>{STYLE}</style></head><body>",
        "<h1>Tupelo beside others</h1>",
        f'<p class="small">{about}</p>',
        f'<nav>{links}<a href="#words">words</a></nav>',
        *(f"<p><b>To know before reading:</b> {escape(caveat)}</p>" for caveat in run.caveats),
        *_summary(run),
        _machine(run),
        _repeats(run),
        _targets(run),
        *_questions(run, measured),
        _faster(run),
        *(_experiment(run, experiment, picture) for experiment in measured),
        _peers(run),
        _remarks(run),
        _absent(run),
        _words(run),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(run: Run) -> Iterator[str]:
    """What the record says, in short, and of each claim; then where Tupelo loses and wins."""
    if run.quick:
        return
    found = answers(run)
    sentences, headlines = in_short(run, [verdict for _, _, verdict, *_ in found.rows])
    yield f"<h2>{escape(headlines.title)}</h2>{_bullets(sentences)}"
    yield _html_table(headlines.heads, headlines.rows)
    if found.rows:
        rows = [row[:-1] for row in found.rows]  # the figures stand in the page themselves
        yield f"<h2>{escape(found.title)}</h2>{_bullets(ANSWERED)}"
        yield f"<p>{escape(f'The publications: {SOURCES}.')}</p>"
        yield _html_table(found.heads[:-1], rows, words=True)
    for each in reversed(wins_and_losses(run)):
        if each.rows:
            yield f"<h2>{escape(each.title)}</h2>{_html_table(each.heads, each.rows)}"


def _bullets(points: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in points)}</ul>"


def _machine(run: Run) -> str:
    return _html_table(("", ""), machine(run).rows, words=True)


def _repeats(run: Run) -> str:
    found = repeats(run)
    return f"<h2>{escape(found.title)}</h2>" + _html_table(found.heads, found.rows)


def _targets(run: Run) -> str:
    found = targets(run)
    if run.quick or not found.rows:
        return ""
    rows = [[cell.strip("*") for cell in row] for row in found.rows]
    return f"<h2>{escape(found.title)}</h2>" + _html_table(found.heads, rows, words=True)


def _questions(run: Run, experiments: Sequence[Experiment]) -> Iterator[str]:
    asked = questions(run, experiments)
    if asked:
        yield "<h2>The questions of the literature</h2>"
    for question in asked:
        yield f"<h3>{escape(question.title)}</h3><p>{escape(question.how)}</p>"
        for each in question.tables:
            yield f'<p class="small">{escape(each.title)}</p>{_html_table(each.heads, each.rows)}'


def _faster(run: Run) -> str:
    text, found = faster_peers(run)
    title = f"<h2>{escape(found.title)}</h2><p>{escape(text)}</p>"
    return title + _html_table(found.heads, found.rows) if found.rows else title


def _experiment(run: Run, experiment: Experiment, picture: Callable[[Figure], str]) -> str:
    parts = [
        f'<h2 id="{experiment.name}">{escape(experiment.name)}: {escape(experiment.title)}</h2>',
        f'<p class="question">{escape(experiment.question)}</p>',
    ]
    if experiment.source:
        parts.append(f'<p class="source">After {escape(experiment.source)}.</p>')
    places = "; ".join(run.placements.get(experiment.name, ()))
    if places:
        parts.append(f'<p class="small">Processors, {escape(places)}.</p>')
    if lacking := drawing.missing():
        parts.append(f"<p><b>No figures:</b> {escape(lacking)}</p>")
    else:
        parts.append(f'<p class="small">{escape(HOW_DRAWN)}</p>')
        drawn = [figure for figure in experiment.figures(run) if not figure.empty]
        parts += [f"<figure>{picture(figure)}</figure>" for figure in drawn]
    lost = undrawn(run, [experiment])
    if lost.rows:
        parts.append(f"<h3>{lost.title}</h3>{_html_table(lost.heads, lost.rows, words=True)}")
    parts += [_printed(printed) for printed in experiment.printed(run)]
    inner = [
        f"<h3>{escape(t.title)}</h3>{_html_table(t.heads, t.rows)}"
        for t in tables(run, experiment.name)
    ]
    explained = (
        '<p class="small">Means, in brackets the least and the greatest mean of a repeat; behind'
        " them how many times the first column that is. A tilde: the samples do not differ"
        " significantly (Mann-Whitney over the repeats, 0.05), or differ the other way round; a"
        " question mark: there are too few repeats to tell.</p>"
    )
    parts.append(
        f"<details open><summary>All figures</summary>{explained}{''.join(inner)}</details>"
    )
    parts.append(_deviations(run, experiment))
    return "\n".join(parts)


def _deviations(run: Run, experiment: Experiment) -> str:
    inner = "".join(
        f"<h3>{escape(t.title)}</h3>{_html_table(t.heads, t.rows)}"
        for t in deviations(run, experiment.name)
    )
    return (
        "<details><summary>Means and standard deviations</summary>"
        f'<p class="small">{escape(EXPLAINED)}</p>{inner}</details>'
    )


def _printed(printed: Printed) -> str:
    rows = []
    for row in printed.rows:
        cells = [f"<td>{escape(row[0])}</td>"]
        for number, cell in enumerate(row[1:]):
            theirs = ' class="theirs"' if number < printed.columns_printed else ""
            cells.append(f"<td{theirs}>{escape(cell)}</td>")
        rows.append("<tr>" + "".join(cells) + "</tr>")
    heads = "".join(f"<th>{escape(head)}</th>" for head in printed.heads)
    return (
        f"<h3>{escape(printed.title)}</h3><p class='small'>Grey: as printed, on the machines of"
        " their time. White: this run.</p>"
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _peers(run: Run) -> str:
    rows = [(name, run.versions.get(name, ""), how) for name, how in run.notes.items()]
    return "<h2>How each is driven</h2>" + _html_table(("", "version", ""), rows, words=True)


def _remarks(run: Run) -> str:
    # Hundreds of cells were not tried for one and the same reason: it is said once.
    cells: dict[tuple[str, str, str, str], list[str]] = {}
    for r in run.remarks:
        cells.setdefault((r.experiment, r.backend, r.why, r.text), []).append(told(r.parameters))
    if not cells:
        return "<h2>Not measured</h2><p>Nothing was left out.</p>"
    rows = [(*alike[:2], "; ".join(cells[alike]), *alike[2:]) for alike in cells]
    return "<h2>Not measured</h2>" + _html_table(("", "", "", "", ""), rows, words=True)


def _absent(run: Run) -> str:
    found = absent(run)
    if not found.rows:
        return ""
    return f"<h3>{found.title}</h3>" + _html_table(found.heads, found.rows, words=True)


def _words(run: Run) -> str:
    found = words(run)
    title = f'<h2 id="words">{found.title}</h2>'
    return title + _html_table(found.heads, found.rows, words=True)


def _html_table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, words: bool = False) -> str:
    kind = ' class="words"' if words else ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        # The end tags of cells and rows may be left out: they would be a tenth of the page.
        "<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in row)
        for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    return f'<div class="scroll"><table{kind}>{top}<tbody>{body}</tbody></table></div>'
