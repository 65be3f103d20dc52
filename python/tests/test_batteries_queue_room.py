"""Queue: the room of a queue with a bound is neither lost nor given twice."""

from contextlib import suppress

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
