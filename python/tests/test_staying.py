"""What can be sent to another process, and what says that it can not."""

import asyncio
import pickle

import pytest

import tupelo as ts
from tupelo import aio


def test_a_space_is_sent_as_its_url(shm):
    shm.put("job", 1)
    with pickle.loads(pickle.dumps(shm)) as other:
        assert other.url == shm.url
        assert other.take("job", int) == ("job", 1)


def made(space):
    """Return one of each kind that stays."""
    space.put("job", 1)
    return {
        "a claim": space.try_claim("job", int),
        "a lease": space.put("host", lease=60),
        "a subscription": space.subscribe("host"),
        "a transaction": space.transaction(),
    }


KINDS = ["a claim", "a lease", "a subscription", "a transaction"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_stays_with_its_process_says_so_and_what_to_do(space, kind):
    told = f"^{kind} stays with the process that made it: (?!$)"
    everything = made(space)
    with pytest.raises(TypeError, match=told):
        pickle.dumps(everything[kind])
    with pytest.raises(ts.NotEncodable, match=f"can not be pickled: {kind} stays with the process"):
        space.put("x", everything[kind])
    everything["a claim"].done()


@pytest.mark.parametrize("kind", KINDS)
def test_so_does_that_of_asyncio(space, kind):
    async def main():
        async with aio.connect(space.url) as shared:
            await shared.put("job", 1)
            claim = await shared.try_claim("job", int)
            everything = {
                "a claim": claim,
                "a lease": await shared.put("host", lease=60),
                "a subscription": shared.subscribe("host"),
                "a transaction": shared.transaction(),
            }
            with pytest.raises(TypeError, match=f"^{kind} stays with the process that made it: "):
                pickle.dumps(everything[kind])
            await claim.done()

    asyncio.run(main())


def test_every_name_is_listed():
    assert set(ts.__all__) <= set(dir(ts))
    assert set(aio.__all__) <= set(dir(aio))
