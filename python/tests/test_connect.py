"""connect, close, remove, spaces."""

import gc
import pickle
import weakref

import pytest
from segments import file_of, flip

import tupelo as ts
from tupelo import REST, aio


def test_a_space_is_made_and_found_again(url):
    with ts.connect(url) as first:
        first.put("job", 1)
    with ts.connect(url) as second:
        assert second.take("job", int) == ("job", 1)


def test_a_space_knows_its_name(url, space):
    assert space.url == url
    assert space.name == url.split("://")[1]
    assert repr(space) == f"<Space {url}>"


def test_without_a_url_the_environment_decides(monkeypatch, new_url):
    url = new_url("mem")
    monkeypatch.setenv("TUPELO_URL", url)
    with ts.connect() as space:
        assert space.url == url


def test_without_a_url_and_environment_it_is_the_default_space(monkeypatch):
    monkeypatch.delenv("TUPELO_URL", raising=False)
    asked = []
    monkeypatch.setattr("tupelo.space.Space", lambda url, **_: asked.append(url))
    ts.connect()
    assert asked == ["shm://default"]


def test_fresh_begins_empty_and_whoever_has_the_old_one_is_told_c4(url):
    with ts.connect(url) as old:
        old.put("job", 1)
        with ts.connect(url, fresh=True) as new:
            assert new.count(REST) == 0
            new.put("job", 2)
        with pytest.raises(ts.SpaceRemoved, match=r"TUP-026: process .* replaced the space"):
            old.take("job", int)


def test_a_space_that_is_not_there_is_not_made_when_it_should_not_be(url):
    with pytest.raises(ts.SpaceNotFound, match=f"there is no space {url}") as caught:
        ts.connect(url, create=False)
    assert isinstance(caught.value, LookupError)
    assert caught.value.code == "TUP-013"
    listed = url.startswith("shm://")  # `tupelo ls` knows no other
    assert ("`tupelo ls`" in str(caught.value.hint)) == listed
    ts.connect(url).close()
    ts.connect(url, create=False).close()


def test_remove_removes(url):
    with ts.connect(url) as space:
        space.put("job", 1)
        ts.remove(url)
        with pytest.raises(ts.SpaceRemoved, match="TUP-026: the space was removed"):
            space.take("job", int)
    with pytest.raises(ts.SpaceNotFound):
        ts.remove(url)
    with ts.connect(url) as again:
        assert again.count(REST) == 0


def test_spaces_lists_those_in_shared_memory(shm):
    entry = next(entry for entry in ts.spaces() if entry["name"] == shm.name)
    assert entry["bytes"] > 0
    assert entry["modified"] > 1_600_000_000


def test_closing_twice_is_fine(space):
    space.close()
    space.close()


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [("16M", 16 << 20), ("1G", 1 << 30), ("65536K", 64 << 20), (9 << 20, 9 << 20)],
)
def test_the_size_is_a_number_or_has_a_unit(url, size, size_bytes):
    with ts.connect(url, size=size) as space:
        assert space.stat()["bytes_max"] == size_bytes


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"url": "jobs"}, ValueError, '"jobs" is no URL of a space'),
        ({"url": "redis://jobs"}, ValueError, "no engine for redis://"),
        ({"url": "shm://"}, ValueError, "names no space"),
        ({"url": "mem://"}, ValueError, "names no space"),
        ({"url": "shm://a/b"}, ValueError, "contains a slash"),
        ({"url": "shm://" + "x" * 300}, ValueError, "up to 100 bytes"),
        ({"url": b"shm://x"}, TypeError, "url has the type bytes: give a str such as 'shm://jobs'"),
        ({"url": "mem://a\ud800"}, ValueError, r"url is 'mem://a\\ud800', which has a lone surr"),
        ({"when_full": "\ud800"}, ValueError, r"when_full is '\\ud800', which has a lone"),
        ({"fresh": "yes"}, TypeError, "fresh has the type str: give True or False"),
        ({"create": 3}, TypeError, "create has the type int: give True or False"),
        ({"size": 0}, ValueError, "size is 0: give a number from 1 on"),
        ({"size": -5}, ValueError, "size is -5: give a number from 1 on"),
        ({"size": "0M"}, ValueError, "size is 0: give a number from 1 on"),
        ({"size": "big"}, ValueError, "size is 'big': give bytes, or a number with K, M, G or T"),
        ({"size": 1.5}, TypeError, "size has the type float: give bytes as an int, or"),
        ({"size": True}, TypeError, "size has the type bool: give bytes as an int, or"),
        ({"size": 1 << 70}, ValueError, f"size is {1 << 70}: give bytes up to 256 GiB"),
        ({"size": f"{1 << 40}T"}, ValueError, f"size is {1 << 80}: give bytes up to 256 GiB"),
        ({"size": "100T"}, ValueError, "is over the maximum of 256 GiB"),
        ({"size": "1000T"}, ValueError, "is over the maximum"),
        ({"url": "mem://never-made?size=big"}, ValueError, r"as in \?size=512M"),
        ({"url": "mem://never-made?speed=9"}, ValueError, "the one option is the size"),
        ({"tuples_max": 0}, ValueError, "tuples_max is 0: give a number from 1 on"),
        ({"fresh": True, "create": False}, ValueError, "fresh is true and create is false"),
        ({"tuples_max": 1 << 70}, ValueError, f"give a number up to {(1 << 63) - 1}, or None"),
        ({"tuples_max": "9"}, TypeError, "tuples_max has the type str: give an int"),
        ({"objects": "json"}, ValueError, "objects is 'json': give 'strict' or 'pickle'"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        ts.connect(**{"url": "mem://never-made", **arguments})
    with pytest.raises(ts.SpaceNotFound):
        ts.remove("mem://never-made")


def test_the_url_may_say_how_large_a_new_space_may_become(new_url):
    url = new_url("mem")
    with ts.connect(f"{url}?size=16M", size="1G") as space:
        assert space.stat()["bytes_max"] == 16 << 20
        assert space.name == url.removeprefix("mem://")
        space.put("job")
    with ts.connect(url) as same:
        assert same.take("job", timeout=0) == ("job",)


def test_a_connection_is_pickled_as_its_url(shm):
    shm.put("job", 1)
    again = pickle.loads(pickle.dumps(shm))
    assert again.take("job", int) == ("job", 1)
    with ts.connect(shm.url, objects="strict") as strict:
        still_strict = pickle.loads(pickle.dumps(strict))
        with pytest.raises(ts.NotEncodable):
            still_strict.put("x", 1j)
        still_strict.close()
    again.close()


def test_a_pickled_connection_does_not_make_a_space(shm):
    pickled = pickle.dumps(shm)
    ts.remove(shm.url)
    with pytest.raises(ts.SpaceNotFound):
        pickle.loads(pickled)
    ts.connect(shm.url).close()


def test_a_space_of_this_process_can_not_be_sent_to_another(new_url):
    with ts.connect(new_url("mem")) as space, pytest.raises(TypeError, match="use shm://"):
        pickle.dumps(space)


def test_a_forgotten_space_is_collected(url):
    space = ts.connect(url)
    reference = weakref.ref(space)
    del space
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("offset", "error", "message", "hint"),
    [
        (0, ts.SpaceCorrupted, "TUP-015.*does not begin as a space does", "`tupelo rm {url}`"),
        (8, ts.VersionMismatch, "TUP-012.*layout 0.0, this build expects", "the same version"),
        (72, ts.SpaceCorrupted, "TUP-015.*fails its checksum", "`tupelo rm {url}`"),
    ],
    ids=["magic", "layout", "checksum"],
)
def test_a_segment_that_can_not_be_used_is_refused_with_what_to_type_c5(
    shm_url, offset, error, message, hint
):
    ts.connect(shm_url).close()
    flip(file_of(shm_url), offset)
    with pytest.raises(error, match=message) as caught:
        ts.connect(shm_url, create=False)
    assert hint.format(url=shm_url) in caught.value.hint
    ts.remove(shm_url)
    with ts.connect(shm_url) as anew:
        assert anew.count() == 0


@pytest.mark.parametrize(
    ("first", "then", "problem"),
    [
        ({"size": "64M"}, {"size": "128M"}, "size of .* is 67108864 bytes, and 134217728 bytes is"),
        ({}, {"size": "1G"}, "size of .* is 268435456 bytes, and 1073741824 bytes is asked for"),
        ({"tuples_max": 5}, {"tuples_max": 6}, "tuples_max of .* is 5, and 6 is asked for"),
        ({}, {"tuples_max": 6}, "tuples_max of .* is no limit, and 6 is asked for"),
        ({}, {"when_full": "wait"}, 'when_full of .* is "error", and "wait" is asked for'),
        ({"when_full": "wait"}, {"when_full": "error"}, 'is "wait", and "error" is asked for'),
    ],
)
@pytest.mark.parametrize("connect", [ts.connect, aio.connect])
def test_limits_that_the_space_has_not_are_refused_with_both_values(
    url, first, then, problem, connect
):
    with ts.connect(url, **first):
        with pytest.raises(ValueError, match=f"(?s){problem}.*leave .* out"):
            connect(url, **then)
        connect(url, **first).close()
        connect(url).close()
        connect(url, create=False).close()
    ts.connect(url, fresh=True, **then).close()


def test_a_size_in_the_url_that_the_space_has_not_is_refused(url):
    with ts.connect(f"{url}?size=64M"):
        ts.connect(f"{url}?size=64M").close()
        with pytest.raises(ValueError, match="is 67108864 bytes, and 134217728 bytes is asked for"):
            ts.connect(f"{url}?size=128M")
        ts.connect(url, size=(64 << 20) - 1).close()  # what is rounded up to the same
