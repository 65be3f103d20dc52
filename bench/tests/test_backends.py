"""Every backend that is installed: what the experiments rely on."""

import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from io import UnsupportedOperation
from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest

import tupelo as ts
from tupelo_bench.backends import space_calls
from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.backends.batches import SelfTimed, put_each, take_each
from tupelo_bench.backends.calls import STOP
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.postgres import Postgres
from tupelo_bench.backends.postgres import space as postgres_space
from tupelo_bench.backends.postgres.server import installed_servers
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.redis.search import RedisSearch
from tupelo_bench.backends.registry import PEERS, UnknownPeerError, chosen
from tupelo_bench.backends.rinda import InsideRinda, Rinda
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.backends.sqlite import FOLDER, MEMORY_FILES, SQLite
from tupelo_bench.harness.lifetime import Server
from tupelo_bench.harness.workers import CONTEXT
from tupelo_bench.runner import started

PLAIN = Schema((Shape("plain", 2),))
KEYED = Schema(
    (Shape("plain", 2), Shape("keyed", 3, (1,)), Shape("keyed-first", 3, (0,), tag_at=1))
)


def installed():
    """The backends that can run here."""
    return [peer for peer in PEERS if issubclass(peer, Backend) and peer.missing() is None]


@pytest.fixture(scope="module", params=installed(), ids=lambda peer: peer.name)
def server(request):
    with started(request.param) as peer:
        yield peer


@pytest.mark.skipif(Redis.missing() is not None, reason="Redis is not installed")
def test_no_wait_of_a_redis_client_is_cut_short():
    with started(Redis) as peer:
        peer.create(PLAIN, ["one"], 1 << 20)
        space = peer.open("one")
        assert space.client.connection_pool.get_connection().socket_timeout is None
        space.close()
        peer.drop()


@pytest.mark.skipif(Postgres.missing() is not None, reason="PostgreSQL is not installed")
def test_who_waits_in_postgresql_looks_once_for_all_that_it_was_told_of(monkeypatch, eventually):
    with started(Postgres) as peer:
        peer.create(PLAIN, ["one"], 1 << 20)
        waits = peer.open("one")
        with monkeypatch.context() as other_process:  # which has a connection of its own
            other_process.setattr(os, "getpid", lambda: 0)
            puts = peer.open("one")
        puts.put("plain", 0)
        assert waits.try_take("plain", int) == ("plain", 0)
        waits.pause(["one"], ("plain", int), 0)  # it listens from now on
        for number in range(200):
            puts.put("plain", number)
        for number in range(200):
            assert waits.try_take("plain", int) == ("plain", number)
        looks = []
        look = waits._look  # noqa: SLF001
        monkeypatch.setattr(waits, "_look", lambda *args: looks.append(1) or look(*args))
        with ThreadPoolExecutor(1) as pool:
            taken = pool.submit(waits.take, "plain", int)
            eventually(lambda: looks)
            puts.put("plain", 7)
            assert taken.result(60) == ("plain", 7)
        assert len(looks) <= 3  # before, for what it was told of, and for the tuple
        peer.drop()


@pytest.mark.skipif(Postgres.missing() is not None, reason="PostgreSQL is not installed")
def test_the_spaces_of_a_process_listen_in_postgresql_once(monkeypatch):
    """They share a connection: who is told of one space is told of the next one, too."""
    with started(Postgres) as peer:
        peer.create(PLAIN, ["one", "two"], 1 << 20)
        spaces = [peer.open("one"), peer.open("two")]
        texts = []
        for space in spaces:
            execute = space._execute  # noqa: SLF001
            note = lambda text, *args, execute=execute, **options: (  # noqa: E731
                texts.append(text), execute(text, *args, **options),
            )[1]  # fmt: skip
            monkeypatch.setattr(space, "_execute", note)
            space.put("plain", 1)
            assert space.take("plain", int) == ("plain", 1)
        assert [text for text in texts if text.startswith("LISTEN")] == ["LISTEN wait0"]
        with monkeypatch.context() as other_process:
            other_process.setattr(os, "getpid", lambda: 0)
            puts = peer.open("two")
        monkeypatch.setattr(postgres_space, "LISTEN_S", 600.0)  # so it has to be told
        sleeps = threading.Event()
        sleep = spaces[1]._sleep  # noqa: SLF001
        monkeypatch.setattr(spaces[1], "_sleep", lambda *args: (sleeps.set(), sleep(*args)))
        with ThreadPoolExecutor(1) as pool:
            taken = pool.submit(spaces[1].take, "plain", int)
            assert sleeps.wait(60)
            puts.put("plain", 7)
            assert taken.result(60) == ("plain", 7)
        peer.drop()


@pytest.mark.skipif(Postgres.missing() is not None, reason="PostgreSQL is not installed")
def test_postgresql_ends_when_it_is_told_to_with_somebody_connected():
    with started(Postgres) as peer:
        peer.create(PLAIN, ["one"], 1 << 20)
        connection = peer.connect()
        peer.server.stop()
        assert peer.server.process.returncode == 0  # killed, it would leave shared memory
        connection.close()


def test_a_postgresql_client_is_no_server_and_versions_are_numbers(tmp_path):
    for version, program in (("9.6", "initdb"), ("15", "initdb"), ("17", "psql"), ("16", "initdb")):
        programs = tmp_path / version / "bin"
        programs.mkdir(parents=True)
        (programs / program).touch()
    found = [programs.parent.name for programs in installed_servers(tmp_path)]
    assert found == ["16", "15", "9.6"]


def test_a_directed_request_is_for_no_other_server(server):
    """Not every adapter matches a number that its schema does not declare as a key."""
    if server.lacks(space_calls.DIRECTED_SCHEMA) is not None:
        assert isinstance(server, Queue)
        return
    server.create(space_calls.DIRECTED_SCHEMA, [space_calls.SPACE], 1 << 20)
    space = server.open(space_calls.SPACE)  # one handle: a private space is that of its handle
    space_calls.SpaceClient(space, 2).stop(3)  # the third is for the first server again
    for number, found in ((1, True), (1, False), (0, True), (0, True), (0, False)):
        expected = ("request", number, STOP) if found else None
        assert space.try_take("request", number, bytes) == expected
    space.close()
    server.drop()


@pytest.fixture
def backend(server):
    schema = KEYED if server.lacks(KEYED) is None else PLAIN
    server.create(schema, ["one", "other"], 1 << 20)
    yield server
    server.drop()


@pytest.fixture
def space(backend):
    handle = backend.open("one")
    yield handle
    handle.close()


def only(peers):
    """A test of these backends, each a test of its own."""
    return pytest.mark.parametrize("server", peers, indirect=True, ids=lambda peer: peer.name)


with_keys = only([peer for peer in installed() if peer is not Queue])


def test_the_oldest_tuple_is_taken_first(backend, space):
    for number in range(3):
        space.put("plain", number)
    taken = [space.take("plain", int) for _ in range(3)]
    expected = [("plain", number) for number in range(3)]
    assert (taken if backend.oldest_first else sorted(taken)) == expected
    assert space.try_take("plain", int) is None


def test_values_come_back_as_they_were(space):
    for value in (None, 7, -1.5, math.inf, "text", b"\x00\xff", "", b""):
        space.put("plain", value)
        assert space.take("plain", ...) == ("plain", value)


@with_keys
def test_a_tuple_is_found_by_its_key_in_any_field(space):
    space.put_all(("keyed", number, "value") for number in range(100))
    space.put_all((number, "keyed-first", "value") for number in range(100))
    assert space.take("keyed", 77, ...) == ("keyed", 77, "value")
    assert space.try_take("keyed", 77, ...) is None
    assert space.take(5, "keyed-first", ...) == (5, "keyed-first", "value")
    assert space.count("keyed", int, str) == 99
    assert space.count("keyed", 3, str) == 1


@with_keys
def test_a_key_may_be_any_text(space):
    keys = ("a*", "*", "[a]", "a?", "\\", "ab")
    for key in keys:
        space.put("keyed", key, 1)
    for key in keys:
        assert space.count("keyed", key, int) == 1
        assert space.try_read("keyed", key, ...) == ("keyed", key, 1)
        assert space.take("keyed", key, ...) == ("keyed", key, 1)
    assert space.count("keyed", str, int) == 0


@with_keys
def test_a_read_leaves_the_tuple(space):
    space.put("keyed", "a", "b")
    assert space.read("keyed", "a", ...) == ("keyed", "a", "b")
    assert space.try_read("keyed", "a", ...) == ("keyed", "a", "b")
    assert space.try_read("keyed", "x", ...) is None
    assert space.try_read("keyed", str, ...) == ("keyed", "a", "b")
    assert space.count("keyed", str, str) == 1
    assert space.try_take("keyed", str, ...) == ("keyed", "a", "b")


@with_keys
def test_one_space_does_not_see_the_tuples_of_another(backend, space):
    space.put("keyed", 1, "here")
    other = backend.open("other")
    assert other.try_read("keyed", 1, str) is None
    assert other.count("keyed", int, str) == 0
    other.close()


def test_an_array_keeps_its_numbers(backend, space):
    values = np.linspace(0, 1, 2_048)
    space.put("plain", backend.array(values))
    _, taken = space.take("plain", backend.array_kind())
    assert np.array_equal(backend.numbers(taken, "f8"), values)


def test_what_is_dropped_is_gone(backend, space):
    space.put("plain", 1)
    schema = backend.schema
    backend.drop()
    backend.create(schema, ["one", "other"], 1 << 20)
    fresh = backend.open("one")
    if not backend.one_process:  # whose spaces go with their process
        assert fresh.count("plain", int) == 0
    fresh.close()


@pytest.mark.parametrize(
    "peer", [peer for peer in installed() if peer.has_server], ids=lambda peer: peer.name
)
def test_a_server_ends_when_it_is_stopped(peer):
    others = set(multiprocessing.active_children())
    with started(peer) as running:
        if isinstance(running.server, Server):
            pid = running.server.process.pid
        else:
            (child,) = set(multiprocessing.active_children()) - others
            pid = child.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_a_killed_run_left_of_sqlite_is_removed_by_the_next_and_nothing_else(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    folders = [Path(MEMORY_FILES, f"{FOLDER}{pid}-left") for pid in (ended.pid, os.getpid())]
    for folder in folders:
        folder.mkdir()
    try:
        backend = SQLite()
        backend.start(tmp_path, ())
        backend.stop()
        assert [folder.exists() for folder in folders] == [False, True]
    finally:
        folders[1].rmdir()


def test_a_template_that_names_some_of_its_keys_is_refused():
    schema = Schema((Shape("block", 3, (1, 2)),))
    assert schema.route(("block", 1, 2)) == (schema.shapes[0], "1\x1f2")
    assert schema.route(("block", int, ...)) == (schema.shapes[0], None)
    with pytest.raises(ValueError, match="names some of its keys"):
        schema.route(("block", 1, int))


def test_peers_are_chosen_by_the_beginnings_of_their_names():
    ours = ["tupelo-shm", "tupelo-mem"]
    assert [peer.name for peer in chosen("mp,redis")] == [*ours, "mp-queue", "mp-manager", "redis"]
    assert [peer.name for peer in chosen("")] == ours
    assert chosen(None) == PEERS
    with pytest.raises(UnknownPeerError, match="there is no peer 'kafka'"):
        chosen("kafka")


def test_a_queue_says_that_it_can_not_be_asked_for_a_key():
    assert Queue().lacks(PLAIN) is None
    assert "can not be asked for a key (keyed, keyed-first)" in Queue().lacks(KEYED)


@pytest.mark.parametrize("verb", ["read", "try_read"])
def test_a_queue_says_that_it_can_not_be_looked_into(verb):
    queue = Queue()
    queue.create(PLAIN, ["one"], 1 << 20)
    handle = queue.open("one")
    with pytest.raises(UnsupportedOperation, match="looked into without taking: \\('plain'"):
        getattr(handle, verb)("plain", int)
    queue.drop()


@only([peer for peer in installed() if peer is Redis])
def test_a_space_of_redis_may_have_any_name_and_a_tag_too(server):
    schema = Schema((Shape("k[x]*", 2, (1,)), Shape("kx", 2, (1,))))
    server.create(schema, ["a*", "ab"], 1 << 20)
    space, other = server.open("a*"), server.open("ab")
    other.put("k[x]*", 1)
    space.put("kx", 2)
    assert space.count("k[x]*", int) == 0
    space.put("k[x]*", 3)
    assert space.try_read("k[x]*", int) == space.try_take("k[x]*", int) == ("k[x]*", 3)
    with pytest.raises(ValueError, match="waiting without a key"):
        space.read("kx", int)
    server.drop()


# --- searches in several spaces ---


def searching():
    """Those that find a match in one of several spaces at once, for several processes."""
    return [
        peer for peer in installed() if peer.search is not Backend.search and not peer.one_process
    ]


by_searchers = only(searching())


@pytest.fixture
def search(backend):
    """What finds a match in "one" or "other" at once, and the two."""
    spaces = [backend.open("one"), backend.open("other")]
    yield backend.search(spaces, "round robin"), *spaces
    for space in spaces:
        space.close()


@by_searchers
def test_a_search_finds_what_is_in_another_space_and_leaves_or_removes_it(search):
    finds, _, other = search
    other.put("keyed", "k", 7)
    for find, left in ((finds.read, 1), (finds.take, 0)):
        found = find("keyed", "k", int)
        assert found.tuple == ("keyed", "k", 7)
        assert found.space is other
        assert found.visited == 2
        assert other.count("keyed", "k", int) == left


@by_searchers
def test_a_search_does_not_take_what_has_another_key(search):
    finds, one, other = search
    one.put("keyed", "j", 1)
    other.put("keyed", "k", 2)
    assert finds.take("keyed", "k", int).tuple == ("keyed", "k", 2)
    assert one.count("keyed", "j", int) == 1


@by_searchers
def test_a_search_does_not_find_what_is_in_a_space_that_was_not_asked_for(backend, search):
    _, one, other = search
    alone = backend.search([other], "round robin")
    one.put("keyed", "k", 1)
    other.put("keyed", "k", 2)
    for find in (alone.read, alone.take):
        assert find("keyed", "k", int).tuple == ("keyed", "k", 2)
    assert one.count("keyed", "k", int) == 1


def put_soon(backend, put_at):
    space = backend.open("other")
    put_at.wait()
    space.put("keyed", "late", 3)
    space.close()


@by_searchers
@pytest.mark.parametrize("verb", ["take", "read"])
def test_a_search_waits_for_what_is_not_there_yet(backend, search, verb):
    finds, one, other = search
    # Not by a fork: a virtual machine does not survive one.
    put_at = CONTEXT.Event()
    putter = CONTEXT.Process(target=put_soon, args=(backend, put_at))
    putter.start()
    try:
        put_at.set()
        found = getattr(finds, verb)("keyed", "late", int)
    finally:
        putter.join()
    assert found.tuple == ("keyed", "late", 3)
    assert found.space is other
    assert one.count("keyed", "late", int) == 0
    assert other.count("keyed", "late", int) == (verb == "read")


def test_databases_have_caches_for_what_they_are_filled_with():
    with started(SQLite) as peer:
        connection = peer.connect()
        told = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("cache_size", "mmap_size")
        ]
        connection.close()
    assert told == [-(64 << 10), 1 << 30]
    if Postgres in installed():
        with started(Postgres) as peer, peer.connect() as connection:
            assert connection.execute("SHOW shared_buffers").fetchone() == ("1GB",)


class Late:
    """A space of Redis, and its client, whose tuple is there after so many looks."""

    def __init__(self, looks):
        self.client, self.looks = self, looks

    def register_script(self, _text):
        return self.look

    def list_of(self, _template):
        return "late"

    def look(self, _names, _arguments):
        self.looks -= 1
        return None if self.looks >= 0 else (1, pickle.dumps(("late",)))


@pytest.mark.parametrize(("looks", "rests"), [(20, False), (21, True)])
def test_a_read_that_looks_again_in_redis_lets_others_put_after_some_looks(looks, rests):
    found = RedisSearch([Late(looks)]).read("late")
    assert found.tuple == ("late",)
    assert found.trips == looks + 1
    assert (found.waited_s > 0) == rests


# --- batches that are timed where they run ---

self_timed = only([peer for peer in installed() if peer in (JavaSpaces, Rinda, InsideRinda)])


@with_keys
def test_a_batch_puts_and_takes_each_and_says_how_long_it_took(space):
    tuples = [("keyed", number, b"\x00\xff") for number in range(20)]
    put_ns = put_each(space, tuples)
    assert put_ns > 0
    assert space.count("keyed", int, bytes) == 20
    wanted = [("keyed", number, bytes) for number in reversed(range(20))]
    take_ns, taken = take_each(space, wanted)
    assert take_ns > 0
    assert taken == tuples[::-1]
    assert space.count("keyed", int, bytes) == 0


@self_timed
def test_what_a_self_timed_space_measures_is_less_than_what_passes_here(space):
    assert isinstance(space, SelfTimed)
    begin = perf_counter_ns()
    put_ns = space.put_each([("keyed", number, 0) for number in range(20)])
    take_ns, _ = space.take_each([("keyed", number, int) for number in range(20)])
    assert 0 < put_ns + take_ns < perf_counter_ns() - begin


def test_what_a_killed_run_left_behind_is_removed_by_the_next_and_nothing_else():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left, living = (f"bench-{pid}-left" for pid in (ended.pid, os.getpid()))
    for name in (left, living):
        ts.connect(f"shm://{name}").close()
    try:
        with started(SharedSpace):
            names = {one["name"] for one in ts.spaces()}
        assert left not in names
        assert living in names
    finally:
        ts.remove(f"shm://{living}")
