"""What a space is made for: one message for many processes, and requests for whoever is idle.

The second stands beside requests that go to each server in turn, through the same space.
"""

from __future__ import annotations

import random
import time
from itertools import count
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Schema, Shape
from tupelo_bench.backends.space_calls import SPACE, DirectedCalls
from tupelo_bench.experiments.rpc.calls import CYCLE, calls, serve
from tupelo_bench.experiments.warming import note_warming, warm_until_steady
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from tupelo_bench.backends.base import Backend
    from tupelo_bench.backends.calls import Calls, Client
    from tupelo_bench.experiments.rpc.calls import Plan
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

READERS = 4
ONE_TO_MANY = "one to many"
UNDIRECTED = "undirected"
DIRECTED = "directed"
DIRECTED_CELL = {"order": "in turn"}  # what a cell of directed requests has beside the others
SHORT_S, LONG_S = 0.001, 0.020  # what a server does for a request
LONG_EVERY = 8
WARM_UP_PART = 10  # of the operations to warm up: each message is some ten of them
NEWS, WARMING = b"n", b"w"  # the bytes of a message that counts, and of one before
NEWS_SCHEMA = Schema((Shape("news", 3, (1,)), Shape("heard", 2)))


# --- one message for many ---


def one_to_many_space(stage: Stage, plan: Plan) -> None:
    """One tuple per message; everybody reads it."""
    _, (profiler, *_) = stage.run(
        (tell, (stage.peer, plan)), *[(hear, (stage.peer, plan))] * READERS
    )
    note_warming(stage, [profiler])
    stage.note(ONE_TO_MANY, "s", [profiler.mean_s(ONE_TO_MANY)])


def tell(bench: Bench, backend: Backend, plan: Plan) -> None:
    """Put a message, wait until all have heard it, take it away."""
    space = backend.open(SPACE)
    numbers = count()

    def tell_all(text: bytes, label: str) -> None:
        number = next(numbers)
        with bench.profiler.time(label):
            space.put("news", number, text * plan.request_bytes)
            heard = [space.take("heard", int)[1] for _ in range(READERS)]
            space.take("news", number, bytes)  # a call leaves nothing to take away
        if heard != [number] * READERS:
            wrong = f"message {number} should have been heard, it was {heard}"
            raise WrongResultError(wrong)

    def warm(messages: int) -> None:
        for _ in range(messages):
            tell_all(WARMING, "warm-up")

    bench.start.wait()
    warm(plan.warm_up // WARM_UP_PART)
    if plan.until_steady:
        warm_until_steady(bench.profiler, lambda: warm(2 * CYCLE // WARM_UP_PART))
    for _ in range(plan.exchanges):
        tell_all(NEWS, ONE_TO_MANY)
    space.close()


def hear(bench: Bench, backend: Backend, plan: Plan) -> None:
    """Read each message once, until all that count have come."""
    space = backend.open(SPACE)
    counting, warming = NEWS * plan.request_bytes, WARMING * plan.request_bytes
    bench.start.wait()
    left, numbers = plan.exchanges, count()
    while left:
        number = next(numbers)
        _, heard, news = space.read("news", number, bytes)
        if heard != number or news not in (counting, warming):
            wrong = f"message {number} is another: {heard}, {news!r:.100}"
            raise WrongResultError(wrong)
        space.put("heard", number)
        left -= news == counting
    space.close()


def one_to_many_calls(stage: Stage, plan: Plan) -> None:
    """A call to each, all under way at once."""
    *_, profiler = stage.run(
        *[(serve, (stage.peer, plan))] * READERS, (tell_each, (stage.peer, plan))
    )[1]
    stage.note(ONE_TO_MANY, "s", [profiler.mean_s(ONE_TO_MANY)])


def tell_each(bench: Bench, peer: Any, plan: Plan) -> None:
    """Call every server with every message."""
    bench.start.wait()
    client: Client = calls(peer).client(READERS)
    messages = [b"q" * plan.request_bytes] * READERS
    expected = [b"r" * plan.response_bytes] * READERS
    for number in range(-(plan.warm_up // WARM_UP_PART), plan.exchanges):
        with bench.profiler.time(ONE_TO_MANY if number >= 0 else "warm-up"):
            answers = client.call_many(messages)
        if answers != expected:
            wrong = f"message {number} was answered by {answers!r:.100}"
            raise WrongResultError(wrong)
    client.stop(READERS)
    client.close()


# --- requests for whoever is idle, and for a server ---


def undirected(stage: Stage, plan: Plan) -> None:
    """Requests of unequal length, for whoever is idle or has answered."""
    _requests(stage, plan, UNDIRECTED, calls(stage.peer))


def directed(stage: Stage, plan: Plan) -> None:
    """The same requests through the same space, each for one server."""
    _requests(stage, plan, DIRECTED, DirectedCalls(stage.peer))


def _requests(stage: Stage, plan: Plan, metric: str, way: Calls) -> None:
    hand = (hand_out, (way, plan, stage.seed, metric))
    # The servers come first: so they have the numbers from 0 on, which a directed request names.
    *_, profiler = stage.run(*[(work, (way,))] * READERS, hand)[1]
    note_warming(stage, [profiler])
    stage.note(metric, "s", [profiler.tracks[metric].total_s])


def work(bench: Bench, way: Calls) -> None:
    """Answer; the request says how long that takes."""
    servant = way.servant(bench.number)
    bench.start.wait()

    def answer(request: bytes) -> bytes:
        time.sleep(float(request))
        return request

    servant.serve(answer)


def hand_out(bench: Bench, way: Calls, plan: Plan, seed: int, metric: str) -> None:
    """Ask for everything at once, and wait for all answers.

    A space gives an undirected request to whoever is idle, and other callers send the next one to
    a server that has answered. A directed one waits for its server. The places of the long ones
    decide how long they all take. The seed of the repeat sets these places, the same for all peers.
    """
    bench.start.wait()
    client: Client = way.client(READERS)

    def warm(requests: int) -> None:
        for _ in range(requests // READERS):
            client.call_many([b"0"] * READERS)

    warm(plan.warm_up)
    if plan.until_steady:
        warm_until_steady(bench.profiler, lambda: warm(CYCLE))
    requests = [
        str(SHORT_S if number % LONG_EVERY else LONG_S).encode() for number in range(plan.exchanges)
    ]
    random.Random(seed).shuffle(requests)
    with bench.profiler.time(metric, len(requests)):
        answers = client.call_many(requests)
    if sorted(answers) != sorted(requests):
        message = f"{len(requests)} answers should have come, there are {len(answers)}"
        raise WrongResultError(message)
    client.stop(READERS)
    client.close()
