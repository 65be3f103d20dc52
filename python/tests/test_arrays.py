"""Arrays go in by the buffer protocol and come back as numpy arrays, or as memoryviews."""

import array
import subprocess
import sys

import numpy as np
import pytest

import tupelo as ts
from tupelo import REST

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


class Metres(np.ndarray):
    """As the quantities of Astropy and Pint are: numbers, and what they mean."""


def assert_same(back, given):
    assert type(back) is np.ndarray
    assert back.dtype == given.dtype.newbyteorder("<")
    assert back.shape == given.shape
    assert np.array_equal(back, given)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", "<>")
def test_every_element_type_comes_back(space, dtype, order):
    given = np.arange(12).reshape(3, 4).astype(np.dtype(dtype).newbyteorder(order))
    space.put("tile", given)
    assert_same(space.take("tile", np.ndarray)[1], given)  # V1, V3


@pytest.mark.parametrize(
    "given",
    [
        np.array(3.5),
        np.zeros(0),
        np.zeros((3, 0, 2)),
        np.arange(10)[::2],
        np.arange(10)[::-1],
        np.arange(12).reshape(3, 4).T,
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.broadcast_to(np.arange(3), (4, 3)),
        np.ones((2,) * 20),
        np.arange(300_000.0),
    ],
    ids=lambda given: f"{given.dtype}{given.shape}{given.strides}",
)
def test_every_shape_and_layout_comes_back(space, given):
    space.put("tile", given)
    assert_same(space.take("tile", np.ndarray)[1], given)


def test_what_comes_back_is_a_copy_that_may_be_changed(space):
    given = np.arange(4)
    space.put("tile", given)
    given[0] = 7
    first = space.read("tile", ...)[1]
    first[1] = 8
    assert space.read("tile", ...)[1].tolist() == [0, 1, 2, 3]  # V2


@pytest.mark.parametrize(
    "given",
    [array.array("d", [1.5, 2.5]), memoryview(b"abc"), memoryview(np.eye(3))],
    ids=["array.array", "bytes", "matrix"],
)
def test_anything_with_a_buffer_is_an_array(space, given):
    space.put("x", given)
    _, back = space.take("x", memoryview)
    assert np.array_equal(back, np.asarray(given))


def test_an_array_that_lies_in_a_file_is_one_by_its_elements(space, tmp_path):
    given = np.memmap(tmp_path / "tile", dtype="f8", mode="w+", shape=(2, 3))
    given[:] = np.arange(6.0).reshape(2, 3)
    space.put("tile", given)
    assert_same(space.take("tile", np.ndarray)[1], np.asarray(given))


def test_an_array_is_found_by_its_value_too(space):
    space.put("x", np.arange(3))
    space.put("x", np.arange(3.0))
    assert space.count("x", np.arange(3)) == 1  # M2
    assert space.count("x", np.ndarray) == 2


def test_arrays_inside_containers_come_back(space):
    space.put("x", [np.arange(2), {"k": np.eye(2)}], (np.zeros(1),))
    _, listed, nested = space.take("x", list, tuple)
    assert listed[0].tolist() == [0, 1]
    assert listed[1]["k"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert nested[0].tolist() == [0.0]


def test_arrays_do_not_move_their_neighbours(space):
    space.put("x", b"before", np.arange(5), "between", np.eye(2), 2**70, "after")
    back = space.take("x", ..., ..., ..., ..., ..., ...)
    assert back[1] == b"before"
    assert back[2].tolist() == [0, 1, 2, 3, 4]
    assert back[3] == "between"
    assert back[4].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert back[5:] == (2**70, "after")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (np.int64(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.float16(2.0), 2.0),
        (np.str_("s"), "s"),
        (np.bytes_(b"b"), b"b"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_scalars_of_numpy_are_the_numbers_they_are(space, given, stored):
    space.put("x", given)
    assert space.count("x", given) == 1
    _, back = space.take("x", stored)
    assert back == stored
    assert type(back) is type(stored)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([object()]), r'an? ndarray of elements "O"'),
        (np.array(["2031-05-04"], dtype="M8[D]"), "cannot include dtype 'M'"),
        (np.array([(1, 2.0)], dtype="i4,f8"), "ndarray of elements"),
        (np.array(["text"]), "ndarray of elements"),
        (np.zeros(1, dtype="g"), 'ndarray of elements "g"'),
        (np.longdouble(1), "numpy.longdouble, which is no number of Python's own"),
        (np.datetime64("2031-05-04"), "numpy.datetime64, which is no number"),
        (np.complex128(1j), "numpy.complex128, which is no number"),
        (np.ma.array([1, 2], mask=[False, True]), "a masked array, whose mask would be lost"),
        (np.eye(2).view(np.matrix), "a matrix, which would come back as a plain numpy array"),
        (np.eye(2).view(Metres), "a Metres, which would come back as a plain numpy array"),
        (np.zeros(2).view(np.recarray), "a recarray, which would come back as a plain"),
    ],
)
def test_elements_that_are_not_stored_are_refused_with_advice(space, given, message):
    with pytest.raises(ts.NotEncodable, match=message) as caught:
        space.put("tile", given)
    assert "field 1 is a" in str(caught.value)
    assert caught.value.hint is not None
    assert space.count(REST) == 0


@pytest.mark.parametrize("dimensions", [33, 64])
def test_an_array_of_too_many_dimensions_is_refused_with_their_number(space, dimensions):
    view = memoryview(b"x").cast("B", (1,) * dimensions)
    for given in (view, np.asarray(view), [view]):
        with pytest.raises(ts.NotEncodable, match=f"an array of {dimensions} dimensions is over"):
            space.put("tile", given)
    assert space.count(REST) == 0


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
import array
import tupelo as ts

space = ts.connect(sys.argv[1])
whole, matrix, none, small = space.take("tiles", ..., ..., ..., ...)[1:]
assert type(whole) is memoryview
assert whole.tolist() == [1.5, 2.5]
assert (matrix.shape, matrix.tolist()) == ((2, 3), [[0, 1, 2], [3, 4, 5]])
assert none.tolist() == []
small[0] = 9
assert small.tolist() == [9, 2]
for name, what in (("half", "f2"), ("flat", "shape (2, 0)"), ("single", "shape ()")):
    try:
        space.take(name, ...)
    except ts.NotEncodable as refusal:
        assert f"field 1 is an array of {what}, which only numpy can show" in str(refusal), refusal
        assert "install numpy" in str(refusal), refusal
    else:
        sys.exit(f"{name} was taken")
    assert space.count(name, ...) == 1
space.put("written", array.array("i", [1, 2]))
"""


def test_without_numpy_an_array_comes_back_as_a_memoryview(shm, shm_url):
    shm.put(
        "tiles",
        np.array([1.5, 2.5]),
        np.arange(6, dtype="i4").reshape(2, 3),
        np.zeros(0),
        np.array([1, 2], dtype="u1"),
    )
    shm.put("half", np.zeros(1, dtype="f2"))
    shm.put("flat", np.zeros((2, 0)))
    shm.put("single", np.array(3.5))
    subprocess.run([sys.executable, "-c", WITHOUT_NUMPY, shm_url], check=True, timeout=60)
    assert shm.take("written", np.ndarray)[1].tolist() == [1, 2]


def test_tupelo_does_not_import_numpy_by_itself():
    code = (
        "import sys, tupelo as ts; s = ts.connect('mem://x'); s.put('a', 1, b'b'); s.take(ts.REST);"
        "s.put('a', [1], memoryview(b'x')); s.count(ts.REST); sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("letter", "?bBhHiIlLqQefdFD")
def test_each_of_the_types_that_numpy_names_twice_comes_back(space, letter):
    given = np.arange(4).astype(letter)
    space.put("tile", given)
    assert_same(space.take("tile", np.ndarray)[1], given)  # `long` and `long long` are of one size


def test_a_read_only_array_is_put_and_comes_back_writable(space):
    given = np.arange(4)
    given.flags.writeable = False
    space.put("tile", given)
    back = space.take("tile", np.ndarray)[1]
    back[0] = 9
    assert back.tolist() == [9, 1, 2, 3]  # V2


def test_the_memory_that_comes_back_is_its_own(space):
    space.put("tile", np.arange(4))
    back = space.take("tile", np.ndarray)[1]
    assert back.flags.owndata
    back.resize(6, refcheck=False)
    assert back.tolist() == [0, 1, 2, 3, 0, 0]


# A numpy whose import fails for a reason of its own must not look like one that is not there.
BROKEN_NUMPY = """
import pathlib, sys
folder = pathlib.Path(sys.argv[2]) / "numpy"
folder.mkdir()
(folder / "__init__.py").write_text("raise RuntimeError('a numpy for another processor')")
sys.path.insert(0, sys.argv[2])
import tupelo as ts

space = ts.connect(sys.argv[1])
try:
    space.take("tile", ...)
except RuntimeError as why:
    assert str(why) == "a numpy for another processor"
else:
    sys.exit("nothing was said")
"""

# The first place of the table tells the version of the interface: here one that does not exist yet.
OTHER_NUMPY = """
import ctypes, sys, types
version = ctypes.CFUNCTYPE(ctypes.c_uint)(lambda: 0x03000000)
table = (ctypes.c_void_p * 400)(ctypes.cast(version, ctypes.c_void_p))
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
for name in ("numpy", "numpy._core", "numpy._core._multiarray_umath"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[name]._ARRAY_API = new(ctypes.cast(table, ctypes.c_void_p), None, None)
import tupelo as ts

space = ts.connect(sys.argv[1])
try:
    space.take("tile", ...)
except ts.NotEncodable as refusal:
    assert "the C interface of numpy has version 0x3000000" in str(refusal), refusal
    assert "whose version begins with 1 or 2" in str(refusal), refusal
else:
    sys.exit("nothing was said")
"""


@pytest.mark.parametrize("program", [BROKEN_NUMPY, OTHER_NUMPY], ids=["broken", "other"])
def test_a_numpy_that_can_not_be_used_says_why_and_the_tuple_stays(shm, shm_url, tmp_path, program):
    shm.put("tile", np.arange(3))
    command = [sys.executable, "-c", program, shm_url, str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    assert shm.take("tile", np.ndarray)[1].tolist() == [0, 1, 2]  # V3
