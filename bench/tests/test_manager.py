"""The store behind the manager, in this process: who is handed a tuple, and who is left alone."""

from threading import Thread
from time import sleep

from tupelo_bench.backends.manager.store import Store

PLACE = ("one", "plain")


def waiting(store, count, *arguments):
    """So many threads that wait for a tuple, in line in this order; and what they got."""
    got = {}
    threads = []
    for number in range(count):
        thread = Thread(target=lambda n=number: got.update({n: store.get(*arguments)}), daemon=True)
        in_line = store.waiting()
        thread.start()
        while store.waiting() == in_line:
            sleep(0.001)
        threads.append(thread)
    return threads, got


def test_a_put_wakes_the_taker_that_waited_longest_and_no_other():
    store = Store()
    threads, got = waiting(store, 3, PLACE, "k", True, True)
    others, _ = waiting(store, 2, PLACE, "j", True, True)
    store.put([(PLACE, "k", ("plain", 1))])
    threads[0].join()
    assert got == {0: ("plain", 1)}
    assert store.waiting() == 4
    assert store.count(PLACE, "k") == 0
    store.put([(PLACE, key, ("plain", 2)) for key in "kkjj"])
    for thread in (*threads, *others):
        thread.join()
    assert store.waiting() == 0


def test_a_put_is_shown_to_the_readers_in_line_and_stays_if_none_takes_it():
    store = Store()
    threads, got = waiting(store, 3, PLACE, None, False, True)
    store.put([(PLACE, "k", ("plain", 1))])
    for thread in threads:
        thread.join()
    assert got == dict.fromkeys(range(3), ("plain", 1))
    assert store.count(PLACE, None) == 1


def test_who_waits_in_several_spaces_is_handed_one_tuple():
    store = Store()
    places = [PLACE, ("other", "plain")]
    thread = Thread(target=store.get_first, args=(places, "", True), daemon=True)
    thread.start()
    while not store.waiting():
        sleep(0.001)
    store.put([(place, "", ("plain", 1)) for place in places])
    thread.join()
    assert [store.count(place, "") for place in places] == [0, 1]
    assert store.waiting() == 0


def test_what_is_forgotten_includes_who_waits_so_that_the_next_tuple_is_not_lost_to_a_dead_client():
    store = Store()
    threads, _ = waiting(store, 2, PLACE, "k", True, True)
    store.clear()
    for thread in threads:
        thread.join()
    assert store.waiting() == 0
    store.put([(PLACE, "k", ("plain", 1))])
    assert store.count(PLACE, "k") == 1
