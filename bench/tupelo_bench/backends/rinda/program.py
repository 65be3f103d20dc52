"""The Ruby program beside a client: it is told line by line, in JSON, what to do."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.lifetime import PipedProgram

if TYPE_CHECKING:
    from tupelo_bench.backends.base import Fields

PROGRAMS = Path(__file__).parent / "ruby"
BRIDGE_CALLS = 1_000
ANY: dict[str, str] = {"kind": "any"}


class Program(PipedProgram):
    """The Ruby program beside a client; with a space of its own if there is no socket."""

    def __init__(self, *socket: str) -> None:
        super().__init__(["ruby", str(PROGRAMS / "client.rb"), *socket])
        self.tell("nothing", [])  # it is ready, and no clock of ours measures its start

    def tell(self, verb: str, argument: Any) -> Any:
        """Say what to do, and wait for the answer."""
        self.questions.write(json.dumps([verb, argument]).encode() + b"\n")
        self.questions.flush()
        answer = self.answers.readline()
        if not answer:
            message = f"the Ruby program ended with {self.process.wait()} when told to {verb}"
            raise RuntimeError(message)
        return json.loads(answer)[0]

    def close(self) -> None:
        """End it."""
        with self.process as process:
            process.terminate()


@cache
def program(socket: str, process: int) -> Program:
    """The one Ruby program beside this process, for all its spaces."""
    del process  # a forked child has another number, and so a program of its own
    return Program(socket)


def telling_s(beside: Program, fields: Fields) -> float:
    """What it costs to tell a program about a tuple that it then ignores."""
    told = [as_json(value) for value in fields]
    begin = perf_counter_ns()
    for _ in range(BRIDGE_CALLS):
        beside.tell("nothing", told)
    return (perf_counter_ns() - begin) / BRIDGE_CALLS / 1e9


def as_json(value: Any) -> Any:
    """A value or a pattern, as the Ruby program understands it."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if value is ...:
        return ANY
    return {"kind": value.__name__} if isinstance(value, type) else value


def from_json(value: Any) -> Any:
    """What the Ruby program answered."""
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value
