"""Queue: the room of a queue with a bound is neither lost nor given twice."""

from contextlib import suppress

import pytest
from forgetting import forgets_a_claim

import tupelo as ts
from tupelo import REST
from tupelo.batteries import Queue


def test_an_abort_that_is_refused_leaves_the_room_to_be_given_back(space):
    mail = Queue[int](space, "mail", maxsize=2)
    for number in range(3):
        mail.put(number, timeout=60)
        delivery = mail.get()
        with delivery as item:
            assert item == number
            with suppress(TypeError):
                delivery.abort(ValueError("no text"))
        assert space.count("tupelo.queue.room", "mail") == 2


@forgets_a_claim
def test_a_bound_is_refused_where_items_and_room_may_be_dropped(url):
    with ts.connect(url, tuples_max=10, when_full="drop-oldest") as space:
        with pytest.raises(ValueError, match="drops its oldest tuples, items and room alike"):
            Queue[int](space, "mail", maxsize=2).put(1)
        assert space.count(REST) == 0
        Queue[int](space, "mail").put(1)
        assert Queue[int](space, "mail", maxsize=2).get().item == 1
