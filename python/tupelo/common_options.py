"""The options that every command of `tupelo` has, for the commands that are Python programs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser


def add_common_options(parser: ArgumentParser, *, default: object = False) -> None:
    """Add `--quiet` and `--no-color`.

    Args:
        parser: of a command, or of a part of one.
        default: their value if they are not given. For a part it is `argparse.SUPPRESS`, which
            keeps the value that was given before it.
    """
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        default=default,
        help="print no results; the exit code tells",
    )
    parser.add_argument(
        "--no-color",
        action="store_true",
        default=default,
        help="as all commands have it; there are no colors here",
    )
