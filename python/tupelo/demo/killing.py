"""Workers that are killed in the middle of a task, and what becomes of it.

    ("victim",)                              whoever takes it is in the middle of a task …
    ("in_the_middle", task, pid, part)       … says so, and waits to be killed
    ("part", part, True)                     for one that is started later: it is stored
    ("done_again", task, pid, attempt)       put under the claim of a task that is not new

No worker is told anything about the task itself. The task is a claim, so it is back when its worker
dies, and the other workers finish all the work. Only if the last one is killed, too, new ones
start: one in the sort, and in the search one for each killed worker. The search starts these in any
case at its end, to take back the tuples that the killed workers had stored.
"""

import os
from typing import Any

import tupelo as ts
from tupelo.demo import database
from tupelo.demo.measure import Plan, WrongResultError
from tupelo.demo.team import PATIENCE_S, Team
from tupelo.formatting import count
from tupelo.terminal import Terminal


def in_the_middle(common: ts.Space, claim: "ts.Claim[Any]", task: str | int, part: int = 0) -> None:
    """In a worker with a task: be killed, or print that another worker was."""
    if common.try_take("victim") is not None:
        common.put("in_the_middle", task, os.getpid(), part)
        common.take("never")
    if claim.attempt > 1:
        claim.put("done_again", task, os.getpid(), claim.attempt)


def search_and_kill(plan: Plan, terminal: Terminal, common: ts.Space, team: Team) -> None:
    """Search as often as workers are to be killed, and kill one each time; check every answer."""
    passwords = plan.wanted(plan.searches)
    expected = {database.digest(password): password for password in passwords}
    parts: list[int] = []  # of killed workers
    for _ in range(plan.kills):
        common.put("victim")
        common.put_all([("search_task", digest, "not_processed") for digest in expected])
        _, digest, pid, part = common.take("in_the_middle", str, int, int, timeout=PATIENCE_S)
        team.kill(pid)
        parts.append(part)
        if not team.pids:
            replace(common, team, parts)
        answers = common.take_many("found_value", str, str, n=len(expected), timeout=PATIENCE_S)
        found = {digest: password for _, digest, password in answers}
        if found != expected:
            message = f"{len(found.items() - expected.items())} searches went wrong"
            raise WrongResultError(message)
        _, _, other, attempt = common.take("done_again", digest, int, int, timeout=0)
        terminal.line(
            f"  worker {pid} killed while it searched for {digest[:8]}…:"
            f" worker {other} has done it again, attempt {attempt}"
        )
    terminal.line(
        f"  {count(plan.kills * len(expected))} searches with {plan.kills} workers killed on the"
        f" way, every password right; {plan.kills} ran again"
    )
    if len(team.pids) + plan.kills == plan.workers:
        terminal.line(
            f"  nobody was replaced: {len(team.pids)} of {plan.workers} did what was left"
        )
    # The tuples that they had stored are taken back.
    replace(common, team, parts)


def replace(common: ts.Space, team: Team, parts: list[int]) -> None:
    """Start workers for the parts of killed workers, all of `parts`."""
    while parts:
        common.put("part", parts.pop(), True)  # noqa: FBT003
        team.start(1)
