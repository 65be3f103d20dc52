"""How figures look: whoever is in one can be told from all others."""

from tupelo.bench.backends.registry import PEERS
from tupelo.bench.report.drawing import COLOURS, MARKS


def test_every_peer_has_a_colour_and_a_mark_of_its_own():
    assert len(set(COLOURS)) == len(COLOURS) >= len(PEERS)
    assert len(set(MARKS)) == len(MARKS) >= len(PEERS)
