"""The open questions of the literature, and the figures of a record that answer them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tupelo_bench.report.questions.adapters import adapters
from tupelo_bench.report.questions.aging import aging
from tupelo_bench.report.questions.field_order import field_order
from tupelo_bench.report.questions.filling import filling
from tupelo_bench.report.questions.knee import knee
from tupelo_bench.report.questions.memory import memory
from tupelo_bench.report.questions.remote import remote
from tupelo_bench.report.questions.search import search
from tupelo_bench.report.questions.waiting import waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.questions.question import Question


def questions(run: Run, experiments: Sequence[Experiment]) -> list[Question]:
    """Those for which something was measured."""
    kept = []
    for question in (
        filling(run),
        knee(run, experiments),
        aging(run, experiments),
        remote(run),
        waiting(run),
        field_order(run),
        search(run),
        memory(run),
        adapters(run),
    ):
        tables = tuple(table for table in question.tables if table.rows)
        if tables:
            kept.append(replace(question, tables=tables))
    return kept
