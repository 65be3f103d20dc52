"""Tasks and requests have arguments and results that are no fields: they are sent as objects."""

import sys
import threading
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import tupelo as ts
from tupelo import REST
from tupelo.batteries import Pool, Service, call
from tupelo.batteries import worker as served

sys.path.insert(0, str(Path(__file__).parent))
import calls
from calls import Colour, Level, Metres, Painted, Word

NOON = datetime(2031, 5, 4, 12)  # noqa: DTZ001 - without a zone, which a field needs
VALUES = [
    Colour.RED,
    Level.HIGH,
    Word.YES,
    Metres(1.5),
    NOON,
    bytearray(b"x"),
    ValueError("no"),
    int,
    "lone \udc80",
    [Colour.RED, {"at": NOON, Level.HIGH: (Word.YES,)}],
    Painted(Colour.RED, NOON),
    7,
    "plain",
    {"z": 1, "a": 2},
]


def assert_same(back, given):
    assert type(back) is type(given)
    if isinstance(given, ValueError):
        assert back.args == given.args
        return
    assert back == given
    if isinstance(given, list):
        assert type(back[1][Level.HIGH][0]) is Word
        assert type(next(key for key in back[1] if key == Level.HIGH)) is Level
    if isinstance(given, dict):
        assert list(back) == list(given)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_no_field_is_an_argument_and_a_result_v1(space, value):
    with Pool(space.url, workers=1) as pool:
        pool.submit(calls.double, 1).result(60)  # so that the worker knows our classes of entries
        (back,), by_name, types = pool.submit(calls.same, value, name=value).result(60)
        assert types == [type(value).__name__] * 2  # where it was called, too
        assert_same(back, value)
        assert_same(by_name["name"], value)
        assert_same(next(iter(pool.map(calls.first, [value]))), value)


@pytest.mark.parametrize("value", VALUES[:10], ids=lambda value: type(value).__name__)
def test_a_call_of_eval_has_such_arguments(space, value):
    done = space.eval("typed", ts.call(calls.type_name, value, name=value))
    assert done.result(60) == ("typed", f"{type(value).__name__} {type(value).__name__}")


def test_the_keywords_of_a_task_keep_their_order(space):
    with Pool(space.url, workers=1) as pool:
        _, by_name, _ = pool.submit(calls.same, zebra=1, aloe=2, moth=3).result(60)
    assert list(by_name) == ["zebra", "aloe", "moth"]


def test_arrays_of_text_and_of_derived_classes_are_sent(space):
    texts = np.array(["a", "bc"])
    with Pool(space.url, workers=1) as pool:
        (back, matrix), _, _ = pool.submit(calls.same, texts, np.eye(2).view(np.matrix)).result(60)
    assert back.tolist() == ["a", "bc"]
    assert type(matrix) is np.matrix


def test_a_task_that_is_tried_again_has_the_same_arguments(shm, shm_url):
    with Pool(shm_url, workers=1, retries=1) as pool:
        later = pool.submit(calls.fail_first, shm_url, Level.HIGH)
        assert later.result(60) == "Level"
    done = shm.eval("x", ts.call(calls.fail, Level.HIGH))
    assert done.exception(60) is not None
    letter = shm.take("tupelo.dead", str, ..., tuple, dict, int, dict)
    assert type(letter[3][1][2][0]) is Level


def test_a_service_is_asked_and_answers_with_such_values(space):
    service = Service(space, "paint", lambda given: (type(given).__name__, given))
    thread = threading.Thread(target=service.run)
    thread.start()
    assert call(space, "paint", Colour.RED, timeout=60) == ("Colour", Colour.RED)
    service.stop()
    thread.join()


def test_where_no_objects_are_sent_the_call_is_refused_with_advice(shm_url):
    with Pool(shm_url, workers=1, objects="strict") as pool:
        with pytest.raises(ts.NotEncodable, match="a member of the Enum Colour"):
            pool.submit(calls.same, Colour.RED)
        assert pool.submit(calls.double, Level.HIGH).result(60) == 6


def test_what_can_not_be_sent_fails_when_it_is_submitted(shm_url):
    task = served(shm_url)(calls.double)
    with pytest.raises(ts.NotEncodable, match="a generator, which can not be pickled"):
        task.submit(calls.unsendable())
    with ts.connect(shm_url) as space:
        assert space.count(REST) == 0
