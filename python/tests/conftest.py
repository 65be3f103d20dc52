"""Which kinds of spaces the tests of a file run on."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from serving import server

import tupelo as ts

SERVED = {
    "test_aio",
    "test_aio_cancel_subscription",
    "test_aio_claim",
    "test_batteries_barrier",
    "test_batteries_locks",
    "test_batteries_queue",
    "test_batteries_service",
    "test_batteries_values",
    "test_bulk",
    "test_claim",
    "test_consume",
    "test_dead",
    "test_eval",
    "test_futures",
    "test_lease",
    "test_pool",
    "test_pool_failures",
    "test_put",
    "test_room",
    "test_scan",
    "test_subscribe",
    "test_swap",
    "test_take",
    "test_tasks",
    "test_transaction",
    "test_transfer",
    "test_wait_none",
    "test_withdrawing",
}
"""The files whose tests also run on the spaces of a server."""

FILED = {
    "test_aio",
    "test_aio_claim",
    "test_batteries_queue",
    "test_bulk",
    "test_claim",
    "test_consume",
    "test_dead",
    "test_futures",
    "test_lease",
    "test_put",
    "test_room",
    "test_scan",
    "test_subscribe",
    "test_swap",
    "test_take",
    "test_transaction",
    "test_transfer",
    "test_wait_none",
}
"""The files whose tests also run on spaces that are kept in a file."""

NOT_FILED = {
    # Each of its puts is on disk before the next.
    "test_ten_thousand_tasks_wait_by_what_one_waits_by_and_each_gets_its_own_tuple_t4",
}
"""The tests of those files that speak of what is different there, or take long."""

NOT_SERVED = {
    # The process that holds a tuple there is the server.
    "test_a_tuple_in_somebodys_hands_is_not_cancelled",
    "test_silence_gives_the_tuple_back_and_the_late_holder_is_refused",
    "test_the_figures_tell_of_claims",
    # It is told at 64 MiB that a frame is too large, and not that the space is too small.
    "test_what_could_never_be_stored_is_refused_at_once_and_the_claim_goes_on",
    # A round trip for each of thousands of tuples, and each waits for the interpreter's lock.
    "test_a_full_space_is_emptied_in_one_step",
    "test_closing_while_tuples_come_leaves_no_future_without_an_end",
    "test_map_returns_the_results_in_the_order_of_the_values",
    "test_the_values_may_be_without_end",
    "test_ten_thousand_futures_wait_by_what_one_waits_by_and_each_gets_its_own_tuple_t4",
    # A claim of 5 ms, or a tuple of 20 ms, may be over before the next call has come to the server.
    "test_a_lease_that_ends_makes_room_for_a_put_that_waits",
    "test_a_claimed_tuple_whose_lease_ends_does_not_come_back",
    "test_a_claim_without_a_block_is_kept_by_extending_it",
}
"""The tests of those files that speak of what is different there, or take long."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what opens a space on each kind of them."""
    if "url" in metafunc.fixturenames and "url" not in vars(metafunc.module):
        schemes = ["mem", "shm"]
        if metafunc.module.__name__ in SERVED and metafunc.function.__name__ not in NOT_SERVED:
            schemes.append("unix")
        if metafunc.module.__name__ in FILED and metafunc.function.__name__ not in NOT_FILED:
            schemes.append("file")
        metafunc.parametrize("url", schemes, indirect=True)


@pytest.fixture
def url_beside(url: str, new_url: Callable[[str], str]) -> str:
    """Return the URL of a second space, of a kind that one step can change together with the first.

    No step is on disk in two files at one moment.
    """
    scheme = url.partition(":")[0]
    return new_url("shm" if scheme == "file" else scheme)


@pytest.fixture
def lasting(new_url: Callable[[str], str]) -> Iterator[Callable[..., ts.Space]]:
    """Return a function that opens a space of a scheme, to go on in the next one of its name."""
    spaces = []

    def lasting(scheme: str, **options: Any) -> ts.Space:
        space = ts.connect(new_url(scheme), size="64M", on_removed="reconnect", **options)
        spaces.append(space)
        return space

    yield lasting
    for space in spaces:
        space.close()


@pytest.fixture(scope="session")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the socket of a server of spaces, which is another process."""
    path = str(tmp_path_factory.mktemp("server") / "tupelo.sock")
    with server(path):
        yield path


@pytest.fixture
def own(new_url: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that gives the spaces of a program other names, those of this test.

    The reader's own may be called as in the page, and so may those of a test that runs beside.
    """
    urls: dict[str, str] = defaultdict(lambda: new_url("shm"))
    return lambda program: re.sub(r"shm://[\w-]+", lambda match: urls[match[0]], program)
