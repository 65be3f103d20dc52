"""What of a peer is installed: whether its Python side can be used, and what its programs say."""

from __future__ import annotations

import importlib
import subprocess


def lacking(*packages: str) -> str | None:
    """Return what is wrong with the first package that can not be imported; None if all can.

    They are imported, not looked up: one that is there and does not work must not end a run.
    """
    for package in packages:
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as error:
            if error.name == package:
                return f"no Python package {package}"
            return f"the Python package {package} lacks {error.name}"
        except Exception as error:  # noqa: BLE001 - what a broken package raises is its own matter
            return f"the Python package {package} does not work: {error!r}"
    return None


def said_by(*command: str) -> str:
    """Return what a program says when it is asked for its version."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
