"""Finalizers that run when the interpreter ends may call what they like: it ends all the same."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import tupelo as ts

space = ts.connect(sys.argv[1])

def nothing_matches():
    space.take("nothing", timeout=0)

def no_value():
    space.put(object())

def no_condition():
    space.read("a", where="f[", timeout=0)

def at_the_end(call):
    try:
        yield
    finally:
        # Nothing can be imported any more, so the exception may be another one.
        try:
            call()
        except Exception:
            print("raised", call.__name__, flush=True)
        else:
            print("no exception")

class Kept:
    pass

kept = Kept()
kept.itself = kept
kept.generators = [at_the_end(call) for call in (nothing_matches, no_value, no_condition)]
for generator in kept.generators:
    next(generator)
# A module is what ends last of all.
sys.modules["kept"] = kept
"""


@pytest.mark.parametrize("engine", ["mem", "shm"])
def test_a_verb_that_raises_in_a_finalizer_at_the_end_raises(engine, shm_url):
    url = shm_url if engine == "shm" else "mem://ends"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, url], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended
    told = ["raised nothing_matches", "raised no_value", "raised no_condition"]
    assert sorted(ended.stdout.splitlines()) == sorted(told), ended
