"""The console script's figures: those of a space in which all are known."""

import json
import os
import re
import subprocess
from typing import NamedTuple

import pytest
from console import command, run

import tupelo as ts

MONTH = 30 * 24 * 3600
"""So long that what is left of it, in a test, reads as what was given."""


class Known(NamedTuple):
    """A space, and what is claimed in it."""

    space: ts.Space
    claims: list[ts.Claim]


@pytest.fixture
def known(shm, eventually):
    """Return a space of ("job", number) from 0 to 15, and of one ("result", number).

    Jobs 0 to 2 were taken, 3 and 4 are dead, 5 and 6 are claimed, 6 for the second time. Job 7 is
    taken in a transaction, which has read 8. Jobs 9 and 10 have a lease, and 11 is for later. One
    caller waits for another job, two for another result. One subscription listens to results.
    """
    with shm.subscribe("result", ..., buffer=2048) as results:
        shm.put_all(("job", number) for number in range(9))
        shm.put("job", 9, lease=MONTH)
        shm.put("job", 10, lease=MONTH)
        shm.put("job", 11, after=MONTH)
        shm.put_all(("job", number) for number in range(12, 16))
        shm.put("result", 0.5)
        for number in range(3):
            shm.take("job", number)
        for number in (3, 4):
            shm.claim("job", number, max_attempts=1).abort("no disk")
        shm.claim("job", 6).abort()
        claims = [shm.claim("job", number, ttl=MONTH) for number in (5, 6)]
        transaction = shm.transaction(ttl=MONTH)
        transaction.take("job", 7)
        transaction.read("job", 8)
        waiting = [shm.take_future("job", 99), *(shm.take_future("result", 9.0) for _ in range(2))]
        eventually(lambda: shm.stat()["waiters"] == 3)
        yield Known(shm, claims)
        assert results.waiting == 1
        for future in waiting:
            future.cancel()
        transaction.abort()


def objects(*words):
    """Run a command with `--json`; return what it printed."""
    told = run(*words, "--json")
    assert (told.returncode, told.stderr) == (0, "")
    return [json.loads(line) for line in told.stdout.splitlines()]


def page(*words):
    """Run a command; return the lines that it printed."""
    told = run(*words)
    assert (told.returncode, told.stderr) == (0, "")
    return told.stdout.splitlines()


def rows(lines):
    """Return the rows of the table in a page: the cell of each column by its head."""
    cells = [re.split("   +", line.strip()) for line in lines]
    heads = next(line for line in cells if line[0] == "FIRST FIELD")
    table = cells[cells.index(heads) + 1 :]
    return {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in table if row != [""]}


def left_of(seconds):
    """Return what JSON may say is left of so many seconds by now."""
    return pytest.approx(seconds, rel=0.01)


def jobs(known):
    """Return the figures of the jobs, but for the bytes, which are the engine's to say."""
    claims = [
        {
            "pid": os.getpid(),
            "fence": claim.fence,
            "attempt": attempt,
            "expires_in_s": left_of(MONTH),
        }
        for attempt, claim in enumerate(known.claims, start=1)
    ]
    return {
        "shape": ["str", "int"],
        "entry": None,
        "names": [{"first": "job", "second": None, "count": 7, "claimed": 2, "dead": 2}],
        "count": 7,
        "waiting": 1,
        "claims": claims,
        "dead": 2,
        "delayed": 1,
        "leased": 2,
        "in_transactions": 1,
        "read_locks": 1,
        "puts": 16,
        "takes": 3,
        "indexes": [],
    }


RESULTS = {
    "shape": ["str", "float"],
    "entry": None,
    "names": [{"first": "result", "second": None, "count": 1, "claimed": 0, "dead": 0}],
    "count": 1,
    "waiting": 2,
    "claims": [],
    "dead": 0,
    "delayed": 0,
    "leased": 0,
    "in_transactions": 0,
    "read_locks": 0,
    "puts": 1,
    "takes": 0,
    "indexes": [],
}

ROWS = {
    '"job"': {"COUNT": "7", "WAITING": "1", "CLAIMED": "2", "LEASED": "2", "DEAD": "2"},
    '"result"': {"COUNT": "1", "WAITING": "2", "CLAIMED": "0", "LEASED": "0", "DEAD": "0"},
}
"""What the tables of all commands say."""


def without_bytes(shapes):
    """Return shapes in the order of their kinds, without their bytes, and claims in theirs."""
    for shape in shapes:
        assert shape.pop("bytes") > 0
        shape["claims"].sort(key=lambda claim: claim["fence"])
    return sorted(shapes, key=lambda shape: shape["shape"], reverse=True)


def with_bytes(space, more):
    """Return `ROWS` with the bytes that `space` has, and more columns for each of them."""
    names = {("str", "int"): '"job"', ("str", "float"): '"result"'}
    taken = {names[tuple(one["kinds"])]: one["bytes"] for one in space.stat()["shapes"]}
    assert all(10 << 10 <= number < 1 << 20 for number in taken.values())
    return {
        name: {**cells, "BYTES": f"{taken[name] >> 10} KiB", **more[name]}
        for name, cells in ROWS.items()
    }


def test_stat_as_json_has_the_figures_of_the_space(known):
    (stat,) = objects("stat", known.space.url)
    shapes = without_bytes(stat.pop("shapes"))
    assert shapes == [jobs(known), RESULTS]
    pid, limit = os.getpid(), 64 << 20
    assert stat["bytes_used"] <= stat["bytes_committed"] <= limit
    assert 0 < stat.pop("bytes_memory") < limit
    assert stat == {
        "url": known.space.url,
        "tuples": 8,
        "bytes_used": known.space.stat()["bytes_used"],
        "bytes_committed": known.space.stat()["bytes_committed"],
        "bytes_max": limit,
        "largest_free_bytes": known.space.stat()["largest_free_bytes"],
        "journal": None,
        "tuples_max": None,
        "when_full": "error",
        "dropped": 0,
        "waiters": 3,
        "blocked": [
            {"template": '("result", 9.0)', "pids": [pid, pid]},
            {"template": '("job", 99)', "pids": [pid]},
        ],
        "waiting_for_room": 0,
        "where_errors": 0,
        "subscriptions": [
            {
                "pid": pid,
                "waiting": 1,
                "buffer": 2048,
                "buffer_bytes": known.space.stat()["subscriptions"][0]["buffer_bytes"],
                "events": 1,
                "dropped": 0,
            }
        ],
        "transactions": [{"pid": pid, "taken": 1, "read": 1, "expires_in_s": left_of(MONTH)}],
        "pids": [pid],
    }


def test_the_page_of_stat_has_a_line_for_each_figure_and_a_row_for_each_name(known):
    lines = page("stat", known.space.url)
    head = lines[: lines.index("")]
    me = f"process {os.getpid()}"
    assert [line for line in head if not line.startswith("  memory ")] == [
        known.space.url,
        "  tuples      8",
        "  when full   a put is refused",
        "  waiting     3 calls",
        f'              2 callers wait ({me}) for ("result", 9.0)',
        f'              {me} waits for ("job", 99)',
        f"  listening   {me}: 1 event of 2 048 waiting, 0 dropped",
        *sorted(
            (f"  claimed     one (str, int) by {me}, attempt {n}, for 30 d" for n in (1, 2)),
            key=head.index,
        ),
        f"  transaction {me} has taken 1 tuple and read 1, for 30 d",
        "  dead        2 tuples",
        "  for later   1 tuple",
        "  leased      2 tuples",
        f"  processes   {os.getpid()}",
    ]
    more = {
        '"job"': {"PUTS": "16", "TAKES": "3"},
        '"result"': {"PUTS": "1", "TAKES": "0"},
    }
    assert rows(lines) == with_bytes(known.space, more)


def test_ls_of_a_space_has_the_same_shapes_as_stat(known):
    assert without_bytes(objects("ls", known.space.url)) == [jobs(known), RESULTS]
    assert rows(page("ls", known.space.url)) == rows(page("stat", known.space.url))


def test_top_has_the_same_shapes_and_no_rates_at_its_first_look(known):
    url = known.space.url
    first = {"url": url, "puts_per_s": None, "takes_per_s": None}
    shapes = without_bytes(objects("top", url, "--count", "1"))
    assert shapes == [{**jobs(known), **first}, {**RESULTS, **first}]
    heading, *table = page("top", url, "--count", "1")
    assert re.fullmatch(
        rf"{url}   8 tuples   \S+ \wiB of 64 MiB   1 process   3 waiting   1 listening"
        "   1 transaction with 1 taken",
        heading,
    )
    no_rates = {"put/s": "-", "take/s": "-"}
    assert rows(table) == with_bytes(known.space, dict.fromkeys(ROWS, no_rates))


def test_what_has_ended_is_in_no_figure(known):
    """And who only looks is none of the processes of a space."""
    known.claims[0].done()
    known.claims[1].abort()
    known.space.requeue("job", int)
    with known.space.transaction() as transaction:
        transaction.take("job", 12)
    (stat,) = objects("stat", known.space.url)
    found, _ = without_bytes(stat["shapes"])
    assert (found["count"], found["claims"], found["dead"], found["takes"]) == (9, [], 0, 5)
    lines = page("stat", known.space.url)
    assert not [line for line in lines if line.startswith(("  claimed ", "  dead "))]
    assert rows(lines)['"job"']["CLAIMED"] == "0"
    (heading, *_) = page("top", known.space.url, "--count", "1")
    assert "   10 tuples   " in heading


def test_tuples_for_which_a_condition_had_no_answer_are_counted_m9(shm):
    shm.put_all(("job", number) for number in range(3))
    assert shm.count("job", int, where="6 / f[1] > 2") == 2
    (stat,) = objects("stat", shm.url)
    assert stat["where_errors"] == 1
    told = "  where       no answer for 1 tuple, which were no match then"
    assert told in page("stat", shm.url)


def test_numbers_of_four_digits_are_grouped(shm):
    shm.put_all(("job", number) for number in range(1_234))
    assert "  tuples      1 234" in page("stat", shm.url)
    (row,) = rows(page("top", shm.url, "--count", "1")).values()
    assert row["COUNT"] == "1 234"


def test_the_rates_of_top_are_of_what_happened_between_two_looks(shm):
    """A look follows the one before after no less than the interval: so no rate is greater."""
    interval_s = 0.05
    rounded_by = 0.05
    shm.put("job", 0)
    words = command("top", shm.url, "--interval", "50ms", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as top:
        try:
            before = json.loads(top.stdout.readline())
            assert (before["puts"], before["takes"]) == (1, 0)
            assert (before["puts_per_s"], before["takes_per_s"]) == (None, None)
            for number in range(1, 1_000):
                shm.put("job", number)
            for number in range(500):
                shm.take("job", number)
            seen = []
            while (before["puts"], before["takes"]) != (1_000, 500):
                look = json.loads(top.stdout.readline())
                for what in ("puts", "takes"):
                    more = look[what] - before[what]
                    assert 0 <= look[f"{what}_per_s"] <= more / interval_s + rounded_by
                    seen += [what] * (look[f"{what}_per_s"] > 0)
                before = look
            assert set(seen) == {"puts", "takes"}
            look = json.loads(top.stdout.readline())
            assert (look["puts_per_s"], look["takes_per_s"], look["count"]) == (0, 0, 500)
        finally:
            top.terminate()
