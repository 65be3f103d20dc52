"""tupelo.search and tupelo.Search: exactly one of several spaces gives exactly one tuple (O10)."""

import gc
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

import pytest
from stopping import stop

import tupelo as ts
from tupelo import REST

LISTS = {"mem": ("mem",) * 3, "shm": ("shm",) * 3, "mixed": ("mem", "shm", "mem")}


@pytest.fixture(params=LISTS)
def spaces(request, new_url):
    """Return three empty spaces, of one kind or of both."""
    opened = [ts.connect(new_url(scheme), size="64M") for scheme in LISTS[request.param]]
    yield opened
    for space in opened:
        space.close()


@pytest.fixture
def shared(new_url):
    """Return three empty spaces that other processes can connect to."""
    opened = [ts.connect(new_url("shm"), size="64M") for _ in range(3)]
    yield opened
    for space in opened:
        space.close()


@dataclass
class Job:
    number: int
    status: str


def waiters(spaces):
    return [space.stat()["waiters"] for space in spaces]


def left(spaces):
    return [space.read_all(REST) for space in spaces]


def test_one_match_is_taken_from_the_first_space_that_has_one_o10(spaces):
    spaces[1].put_all([("job", 1), ("job", 2)])
    spaces[2].put("job", 3)
    found = ts.search(spaces, "job", int)
    assert (found.tuple, found.space, found.visited) == (("job", 1), spaces[1], 2)
    assert found.waited_s == 0.0
    assert left(spaces) == [[], [("job", 2)], [("job", 3)]]
    assert waiters(spaces) == [0, 0, 0]


def test_a_search_that_reads_leaves_the_tuple_where_it_is(spaces):
    spaces[2].put("rate", 0.5)
    found = ts.search(spaces, "rate", float, want="read")
    assert (found.tuple, found.space, found.visited) == (("rate", 0.5), spaces[2], 3)
    assert left(spaces) == [[], [], [("rate", 0.5)]]
    search = ts.Search(spaces)
    assert search.read("rate", ...).tuple == search.try_read("rate", ...).tuple == ("rate", 0.5)
    assert search.try_take("rate", ...).tuple == ("rate", 0.5)
    assert search.try_take("rate", ...) is search.try_read("rate", ...) is None


@pytest.mark.parametrize("place", range(3))
def test_a_search_waits_in_all_spaces_for_the_first_match_t6(spaces, place, eventually):
    found = []
    thread = threading.Thread(target=lambda: found.append(ts.search(spaces, "job", int)))
    thread.start()
    eventually(lambda: min(waiters(spaces)) > 0)
    spaces[place].put("other", 1)
    spaces[place].put("job", 7)
    thread.join()
    assert (found[0].tuple, found[0].space) == (("job", 7), spaces[place])
    assert found[0].visited == 6, "a look at each, and a place in the wait queue in each"
    assert found[0].waited_s > 0
    assert waiters(spaces) == [0, 0, 0]


def test_of_two_matches_that_come_at_once_one_goes_back_to_its_place_t5(spaces):
    line = ts.Search(spaces).waiter("take", "job", int)
    for place, space in enumerate(spaces):
        space.put_all(("job", 10 * place + number) for number in range(3))
    assert line.finish_now().tuple == ("job", 0)
    numbers = [[number for _, number in space.take_all("job", int)] for space in spaces]
    assert numbers == [[1, 2], [10, 11, 12], [20, 21, 22]]


def test_a_search_that_ends_keeps_nothing_from_others_and_has_what_came_in_time_t5(spaces):
    line = ts.Search(spaces).waiter("take", "job", int)
    line.end_wait()
    spaces[2].put("job", 1)
    assert line.finish_now() is None
    assert spaces[2].try_take("job", int) == ("job", 1)
    line = ts.Search(spaces).waiter("take", "job", int)
    spaces[2].put("job", 2)
    line.end_wait()
    assert spaces[2].try_take("job", int) is None
    assert line.finish_now().tuple == ("job", 2)


def test_what_goes_back_serves_others_who_wait_for_it_t5(spaces, eventually):
    line = ts.Search(spaces).waiter("take", "job", int)
    taken = []
    thread = threading.Thread(target=lambda: taken.append(spaces[1].take("job", int)))
    thread.start()
    eventually(lambda: spaces[1].stat()["waiters"] >= 2)
    spaces[1].put("job", 1)
    spaces[0].put("job", 0)
    assert line.finish_now().tuple == ("job", 0)
    thread.join()
    assert taken == [("job", 1)]


def test_a_search_in_vain_says_where_something_like_it_is(spaces):
    spaces[1].put("job", "seven")
    with pytest.raises(ts.Timeout) as caught:
        ts.search(spaces, "job", int, timeout=0.01)
    url = spaces[1].url
    assert f'nothing matched ("job", :int) within 0.01 s in {url} and 2 more' in str(caught.value)
    assert "field 1 is str there, :int in the template" in str(caught.value)
    with pytest.raises(ts.Timeout, match="within 0 s"):
        ts.search(spaces, "job", int, timeout=0)
    assert left(spaces) == [[], [("job", "seven")], []]
    assert waiters(spaces) == [0, 0, 0]


def test_a_condition_and_a_class_of_entries_select_as_in_a_take_m7_m9(spaces, eventually):
    spaces[2].put_all([("job", 1), ("job", 2)])
    assert ts.search(spaces, "job", int, where="f[1] % 2 == 0").tuple == ("job", 2)
    with pytest.raises(ts.Timeout):
        ts.search(spaces, "job", int, where="f[1] % 2 == 0", timeout=0.01)
    spaces[1].put(Job(1, "done"))
    spaces[2].put(Job(2, "new"))
    search = ts.Search(spaces)
    assert search.take(Job, status="new").tuple == Job(2, "new")
    assert search.take(ts.like(Job)).tuple == Job(1, "done")
    found = []
    even = {"where": "f[1] % 2 == 0", "timeout": 60}
    thread = threading.Thread(target=lambda: found.append(search.take("later", int, **even)))
    thread.start()
    eventually(lambda: min(waiters(spaces)) > 0)
    spaces[0].put("later", 1)
    spaces[1].put("later", 4)
    thread.join()
    assert found[0].tuple == ("later", 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda _: ([],), ValueError, "no space to search in\n  give at least one"),
        (lambda spaces: (spaces[0],), TypeError, r"give a list, as in \[space\]"),
        (lambda spaces: ([*spaces, 7],), TypeError, r"spaces\[3\] has the type int: give one of"),
        (lambda spaces: (spaces * 2,), ValueError, "is to be searched twice\n  name every space"),
        (lambda spaces: (spaces, ("job", 1)), TypeError, "the only argument is a tuple"),
        (lambda spaces: (spaces, bytearray()), ts.NotEncodable, "field 0 is a bytearray"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(spaces, arguments, error, message):
    with pytest.raises(error, match=message):
        ts.search(*arguments(spaces))


def test_options_that_make_no_sense_are_refused(spaces):
    with pytest.raises(ValueError, match="timeout is -1: give seconds from 0 on"):
        ts.search(spaces, "job", timeout=-1)
    with pytest.raises(ValueError, match="want is 'have': give 'take' or 'read'"):
        ts.search(spaces, "job", want="have")
    with pytest.raises(ValueError, match="order is \"best\": give 'round robin' or 'success"):
        ts.Search(spaces, order="best")
    many = [spaces[0]] * 257
    with pytest.raises(ts.LimitExceeded, match="257 spaces, the maximum is 256"):
        ts.Search(many)


def test_a_space_that_is_closed_ends_the_search_and_is_named(spaces, eventually):
    caught = []

    def waits():
        with pytest.raises(ts.SpaceClosed) as info:
            ts.search(spaces, "job", int)
        caught.append(info.value)

    thread = threading.Thread(target=waits)
    thread.start()
    eventually(lambda: min(waiters(spaces)) > 0)
    spaces[1].close()
    thread.join()
    assert caught[0].space == spaces[1].url
    spaces[0].put("job", 1)
    assert spaces[0].count("job", int) == 1, "nobody is in the wait queue any more"


def test_a_search_shows_itself_and_what_it_found(spaces):
    search = ts.Search(iter(spaces))
    assert search.spaces == tuple(spaces)
    assert repr(search) == f"<Search {', '.join(space.url for space in spaces)}>"
    spaces[0].put("job", 1)
    assert repr(search.take("job", int)) == (
        f"Found(tuple=('job', 1), space={spaces[0]!r}, visited=1, waited_s=0.0)"
    )


# --- many at once ---

SEARCHER = """
import sys
import tupelo as ts
from tupelo import F
spaces = [ts.connect(url, create=False) for url in sys.argv[1:4]]
search = ts.Search(spaces, order=sys.argv[4])
while True:
    _, number = search.take("job", int).tuple
    if number < 0:
        break
    spaces[number % 3].put("done", number)
"""


def start(code, *words):
    return subprocess.Popen([sys.executable, "-c", code, *words])


@pytest.mark.parametrize("order", ["round robin", "success factor"])
def test_of_many_processes_exactly_one_finds_each_tuple_t1(shared, order):
    count, processes = 3_000, 4
    urls = [space.url for space in shared]
    searchers = [start(SEARCHER, *urls, order) for _ in range(processes)]
    for number in range(count):
        shared[number * 7 % 3].put("job", number)
    answers = ts.Search(shared)
    done = [answers.take("done", int, timeout=120).tuple[1] for _ in range(count)]
    assert sorted(done) == list(range(count))
    for _ in range(processes):
        shared[0].put("job", -1)
    assert [searcher.wait(timeout=120) for searcher in searchers] == [0] * processes
    assert left(shared) == [[], [], []]


def test_a_searcher_that_is_killed_leaves_its_places_and_all_tuples_l5_t5(shared, eventually):
    urls = [space.url for space in shared]
    for number in range(5):
        searcher = start(SEARCHER, *urls, "round robin")
        eventually(lambda: min(waiters(shared)) > 0)
        stop(searcher)
        # Handed over to one that will never pick them up.
        for space in shared:
            space.put("job", number)
        assert [space.count("job", int) for space in shared] == [0, 0, 0]
        searcher.kill()
        searcher.wait()
        assert [space.take("job", int, timeout=60) for space in shared] == [("job", number)] * 3
        eventually(lambda: waiters(shared) == [0, 0, 0])


HOLDS = """
import sys, threading
import tupelo as ts
space = ts.connect(sys.argv[1], create=False)
claim = space.claim("job", int, ttl=3600)
space.put("held")
threading.Event().wait()
"""


def read_while_the_holder_dies(shared, eventually):
    """Search for what a process holds that is killed meanwhile; None if it died too late for it."""
    holder = start(HOLDS, shared[1].url)
    assert shared[1].take("held", timeout=60) == ("held",)
    with pytest.raises(ts.Timeout):
        # It sweeps, so that nobody does again for a while.
        ts.search(shared, "never", timeout=0.001)
    with ThreadPoolExecutor(1) as threads:
        deadline = monotonic() + 0.05
        later = threads.submit(ts.search, shared, "job", int, timeout=0.05, want="read")
        eventually(lambda: later.done() or min(waiters(shared)) > 0)
        holder.kill()
        holder.wait()
        is_in_time = monotonic() < deadline
    return later.result().tuple if is_in_time else None


def test_a_search_whose_time_runs_out_gets_what_the_dead_held_l5(shared, eventually):
    shared[1].put("job", 7)
    found = None
    while found is None:
        found = read_while_the_holder_dies(shared, eventually)
    assert found == ("job", 7)


def test_cancelled_searches_beside_takes_lose_nothing_t5(spaces):
    count = 1_500
    search = ts.Search(spaces)
    taken, over = [], threading.Event()

    def searches():
        while not over.is_set():
            with suppress(ts.Timeout):
                taken.append(search.take("job", int, timeout=0.0002).tuple)

    threads = [threading.Thread(target=searches) for _ in range(3)]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    for number in range(count):
        chance.choice(spaces).put("job", number)
        if number % 10 == 0 and (one := chance.choice(spaces).try_take("job", int)):
            taken.append(one)
    over.set()
    for thread in threads:
        thread.join()
    taken += [one for space in spaces for one in space.take_all("job", int)]
    assert sorted(number for _, number in taken) == list(range(count))


INTERRUPTED = """
import signal, sys
import tupelo as ts
spaces = [ts.connect(url, create=False) for url in sys.argv[1:]]
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    ts.search(spaces, "job", int)
except KeyboardInterrupt:
    assert [space.stat()["waiters"] for space in spaces] == [0, 0, 0]
    sys.exit(7)
"""


def test_an_interrupted_search_has_no_effect_t5(shared, eventually):
    child = start(INTERRUPTED, *[space.url for space in shared])
    eventually(lambda: min(waiters(shared)) > 0)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 7
    assert left(shared) == [[], [], []]


def test_the_child_of_a_fork_searches_too_also_after_its_parent_has_waited(shared, eventually):
    search = ts.Search(shared)
    for place in (2, 0):
        thread = threading.Thread(target=search.take, args=("job", int))
        thread.start()
        eventually(lambda: min(waiters(shared)) > 0)
        shared[place].put("job", 1)
        thread.join()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            shared[1].put("ready", search.take("go", int, timeout=60).tuple[1])
            code = 0
        finally:
            os._exit(code)
    eventually(lambda: min(waiters(shared)) > 0)
    shared[2].put("go", 5)
    assert search.take("ready", int, timeout=60).tuple == ("ready", 5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# --- the order of the visits ---


def test_by_success_factor_the_space_where_most_searches_ended_comes_first(spaces):
    search = ts.Search(spaces, order="success factor")
    for name, place in (("border", 2), ("panel", 1)):
        spaces[place].put_all([(name, 1)] * 7)
    assert [search.take("border", int).visited for _ in range(7)] == [3, 3, 3, 3, 3, 1, 1]
    assert [search.take("panel", int).visited for _ in range(7)] == [3, 2, 2, 2, 2, 1, 1]
    spaces[2].put("border", 1)
    assert search.take("border", 1).visited == 1, "a value is as good as its type"


def searches(chance, shares, order, new_url):
    """The mean of visited spaces over searches for tuples that are where the shares say."""
    spaces = [ts.connect(new_url("mem"), size="4M") for _ in shares]
    search = ts.Search(spaces, order=order)
    visited = []
    for number in range(200):
        (space,) = chance.choices(spaces, shares)
        space.put("border", number)
        visited.append(search.take("border", number).visited)
    for space in spaces:
        space.close()
    return statistics.mean(visited)


def sign_test_p(first, second):
    """Return how likely so uneven a division of pairs is by chance; equal pairs tell nothing."""
    above = sum(one > other for one, other in zip(first, second, strict=True))
    below = sum(one < other for one, other in zip(first, second, strict=True))
    rarer = sum(math.comb(above + below, k) for k in range(min(above, below) + 1))
    return min(1.0, 2 * rarer * 0.5 ** (above + below))


@pytest.mark.parametrize(
    ("shares", "gains"),
    [
        ((0, 1, 0, 0, 2, 0, 0), True),  # two neighbours, as in the ocean model
        ((1, 2, 3, 4, 5, 6, 7), True),
        ((1,) * 7, False),  # nothing to learn
        ((64, 32, 16, 8, 4, 2, 1), False),  # the list has the best order already
    ],
)
def test_success_factor_visits_no_more_spaces_than_round_robin_over_20_seeds(
    shares, gains, new_url
):
    by = {
        order: [searches(random.Random(seed), shares, order, new_url) for seed in range(20)]
        for order in ("round robin", "success factor")
    }
    turns, learned = by["round robin"], by["success factor"]
    # The same seeds, so the same tuples at the same places: pairs.
    differ = sign_test_p(turns, learned) < 0.05
    more = statistics.mean(learned) > statistics.mean(turns)
    assert not (differ and more), "not significantly above"
    if gains:
        assert differ


# --- recording ---

RECORDED = """
import sys
import tupelo as ts
spaces = [ts.connect(url) for url in sys.argv[1:]]
spaces[1].put("job", 7)
search = ts.Search(spaces)
search.read("job", int)
ts.search(spaces, "job", int)
search.try_take("job", int)
"""


def test_a_search_is_recorded_where_its_tuple_was(shared, tmp_path):
    urls = [space.url for space in shared]
    environment = {**os.environ, "TUPELO_RECORD": str(tmp_path)}
    subprocess.run([sys.executable, "-c", RECORDED, *urls], env=environment, check=True)
    (path,) = tmp_path.iterdir()
    text = path.read_text(encoding="utf-8").rstrip("\0")  # what is left of the file
    lines = [json.loads(line) for line in text.splitlines()]
    told = [(line["verb"], line["space"], line.get("template")) for line in lines]
    template = ['"job"', ":int"]
    assert told == [
        ("put", urls[1], None),
        ("waits", urls[0], template),
        ("read", urls[1], template),
        ("waits", urls[0], template),
        ("take", urls[1], template),
        ("take", urls[0], template),
    ]
    together = [line["spaces"] for line in lines if "spaces" in line]
    assert together == [urls, urls, urls]  # asked in all, and at last found in none


def test_what_was_found_is_collected_also_in_a_cycle(space):
    class Followed(list):
        pass

    space.put("job", {})
    found = ts.search([space], "job", dict)
    follower = Followed()
    found.tuple[1]["found"], found.tuple[1]["follower"] = found, follower
    gone = weakref.ref(follower)
    del found, follower
    gc.collect()
    assert gone() is None
