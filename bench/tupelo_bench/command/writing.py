"""The files that were asked for: whether they can be written, and what went wrong."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tupelo_bench.presentation.units import quantity
from tupelo_bench.report import files
from tupelo_bench.report.page import page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tupelo.terminal import Terminal
    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run


def require_places(options: argparse.Namespace) -> None:
    """See that what is asked for can be written, before anything is measured.

    Raises:
        OSError: it can not; with the name of the place.
    """
    if options.out:
        with _named("--out", options.out):
            options.out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=options.out):
                pass
    for option, path in (("--save", options.save), ("--html", options.html)):
        if path is not None and path.is_dir():
            message = f"{option} {path} is a folder: name a file in it"
            raise IsADirectoryError(message)
        if path is not None:
            with _named(option, path), tempfile.TemporaryFile(dir=path.parent):
                pass


@contextmanager
def _named(option: str, path: Path) -> Iterator[None]:
    """Say of what can not be written by which option it was asked for, and what to type."""
    try:
        yield
    except OSError as error:
        what = "folder that can" if option == "--out" else "file in a folder that can"
        message = (
            f"{option} {path} can not be written ({str(error.strerror).lower()}): name a {what}"
        )
        raise OSError(message) from error


def store(
    run: Run, everything: tuple[Experiment, ...], options: argparse.Namespace, terminal: Terminal
) -> None:
    """Write the files that were asked for, and say what went wrong."""
    terminal.line()
    try:
        _write(run, everything, options, terminal)
    except OSError:
        if not options.record:
            with tempfile.NamedTemporaryFile(suffix=".run.json", delete=False) as rescued:
                run.save(Path(rescued.name))
            sys.stderr.write(f"tupelo bench: what was measured is in {rescued.name}\n")
        raise
    for remark in run.failures:
        terminal.line(f"{remark.experiment}, {remark.backend}: {remark.why}: {remark.text}")
    if run.quick:
        terminal.line("quick sizes: to see that it works, not how fast it is")


def _write(
    run: Run, everything: tuple[Experiment, ...], options: argparse.Namespace, terminal: Terminal
) -> None:
    """Write the files that were asked for."""
    if options.out:
        written = files.write(run, everything, options.out)
        size_bytes = sum(path.stat().st_size for path in written)
        terminal.line(
            f"{len(written)} files in {options.out}, {quantity(size_bytes, 'bytes')}, among them"
            f" {written[-1]}"
        )
    if options.save:
        run.save(options.save)
        terminal.line(f"the record is in {options.save}")
    if options.html:
        options.html.write_text(page(run, everything), encoding="utf-8")
        terminal.line(f"the page is {options.html}")
