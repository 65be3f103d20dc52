"""JavaSpaces as a peer: whom its server listens to, where it is installed."""

from contextlib import suppress
from pathlib import Path

import pytest

from tupelo_bench.backends.base import Schema, Shape
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.javaspaces.entry_classes import class_name, entry_classes, field_names
from tupelo_bench.runner import started

# Where its server listens can only be seen where there is one, for which it takes a JDK and the
# archives of River: few have them.
MISSING = JavaSpaces.missing()
LISTENING = "0A"
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


@pytest.mark.skipif(MISSING is not None, reason=f"JavaSpaces: {MISSING}")
def test_its_server_listens_on_the_loopback_and_on_no_address_of_the_network():
    with started(JavaSpaces) as peer:
        peer.create(Schema((Shape("plain", 2),)), ("one",), 1 << 20)
        process = peer.server.process.pid
        own = set(files_of(process))
        tcp = [
            address
            for address, state, socket in (*sockets_of("tcp"), *sockets_of("tcp6"))
            if socket in own and state == LISTENING
        ]
        udp = {socket for *_, socket in (*sockets_of("udp"), *sockets_of("udp6"))}
        peer.drop()
    assert tcp
    assert [address for address in tcp if address not in LOOPBACK] == []
    assert not own & udp  # it announces itself to nobody


def test_no_two_shapes_or_spaces_share_a_class():
    shapes = [Shape(tag, 2) for tag in ("a-b", "a b", "ab", "Ab", "a", "é", "1", "one a")]
    shapes.append(Shape("a", 21))
    names = list(entry_classes(shapes, ("one", "b", "a b", "One")))
    assert len(names) == len(shapes) * 5
    assert len({name.lower() for name in names}) == len(names)  # each is a file, too
    assert all(name.isascii() and name.isidentifier() for name in names)


def test_an_entry_has_no_field_for_the_tag_that_its_class_says():
    assert field_names(Shape("job", 3)) == ["f1", "f2"]
    assert field_names(Shape("job", 3, tag_at=1)) == ["f0", "f2"]
    (source,) = entry_classes([Shape("go", 1)], ("one",)).values()
    assert "Object f" not in source
    assert source.count(f"public {class_name(Shape('go', 1))}(") == 1  # there is nothing to fill


def files_of(process):
    """What a process has open."""
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            yield str(link.readlink())


def sockets_of(family):
    """The sockets of a family: address, state, and how the files of a process name it."""
    for line in Path(f"/proc/net/{family}").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        yield words[1].partition(":")[0], words[3], f"socket:[{words[9]}]"
