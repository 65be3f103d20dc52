"""tupelo.linda: Linda's names."""

import pytest

import tupelo as ts
from tupelo import linda


def test_the_classic_verbs(url, new_url):
    with linda.connect(url, size="16M") as space, linda.connect(new_url("mem")) as mem:
        space.out("job", 1)
        assert space.rd("job", int) == space.rdp("job", int) == ("job", 1)
        assert space.in_("job", int) == ("job", 1)
        assert space.inp("job", int) is None
        space.put("job", 2)
        assert space.rdg("job", int) == space.ing("job", int) == [("job", 2)]
        mem.out("a")
        with linda.connect(new_url("mem")) as other:
            assert mem.copy_collect(other, "a") == mem.collect(other, "a") == 1
            assert other.count("a") == 2


def test_it_is_a_space_like_any_other(url):
    with linda.connect(url) as space, ts.connect(url) as plain:
        assert isinstance(space, ts.Space)
        assert repr(space) == f"<Space {url}>"
        plain.put("job", 1)
        assert space.in_("job", int, timeout=1) == ("job", 1)
        with pytest.raises(TypeError, match="take"):
            space.in_("job", timout=3)
