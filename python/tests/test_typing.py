"""The static types: what two type checkers infer, and that the stub tells the truth."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tupelo as ts
from tupelo import _native

ROOT = Path(__file__).parents[2]
PROGRAMS = ["typed_program.py", "typed_batteries.py"]
CHECKERS = {
    "mypy": ["mypy", "--strict"],
    "basedpyright": ["basedpyright", "--warnings", "--pythonpath", sys.executable],
}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_type_checker_infers_the_types_of_the_fields(checker, program):
    finished = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], Path(__file__).with_name(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_error_for_a_mistyped_keyword_fits_on_a_screen(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tupelo as ts\n"
        'space = ts.connect("mem://typed")\n'
        'space.take("job", int, timeouts=3)\n'
    )
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    lines = finished.stdout.splitlines()
    assert "program.py:3: error: No overload variant" in lines[0]
    assert len(lines) <= 45


@pytest.mark.parametrize("verbs_of", [ts.Space, ts.TransactionSpace])
def test_the_stub_has_the_help_of_each_verb(verbs_of):
    stub = ast.parse(STUB)
    told = {
        node.name: ast.get_docstring(node)
        for one in reversed(stub.body)
        if isinstance(one, ast.ClassDef) and one.name in {"_Verbs", verbs_of.__name__}
        for node in reversed(one.body)
        if isinstance(node, ast.FunctionDef)
    }
    for name in public(vars(verbs_of)):
        method = getattr(ts.Space if name in public(vars(ts.Space)) else verbs_of, name)
        if callable(method):
            assert told[name], name


def test_the_stub_is_what_its_generator_writes():
    generator = ROOT / "python" / "tools" / "make_stubs.py"
    subprocess.run([sys.executable, generator, "--check"], check=True, timeout=60)


def names_in_stub(text, indent):
    """Return the names that a stub defines at one level of indentation."""
    prefixes = [f"{indent}{word} " for word in ("def", "class")]
    return {
        line.removeprefix(prefix).split("(")[0].split(":")[0]
        for line in text.splitlines()
        for prefix in prefixes
        if line.startswith(prefix)
    }


STUB = Path(_native.__file__).with_name("_native.pyi").read_text(encoding="utf-8")


def public(names):
    """Return the names without an underscore in front."""
    return {name for name in names if not name.startswith("_")}


def test_the_stub_names_what_the_native_module_has():
    assert public(vars(_native)) == public(names_in_stub(STUB, "")) - {"AnyFormal"}


def methods_in_stub(name):
    """Return the methods that the stub of a class defines, or its base."""
    start = STUB.index(f"\nclass {name}")
    ends = (STUB.find(f"\n{word}", start + 1) for word in ("class", "def", "@"))
    end = min((end for end in ends if end >= 0), default=len(STUB))
    names = names_in_stub(STUB[start:end], "    ")
    return {name for name in names if not name.startswith("__")}


@pytest.mark.parametrize("verbs_of", [ts.Space, ts.TransactionSpace])
def test_the_stub_names_every_verb(verbs_of):
    verbs = {name for name in vars(verbs_of) if not name.startswith("__")}
    assert methods_in_stub(f"{verbs_of.__name__}(_Verbs)") | methods_in_stub("_Verbs") == verbs


VERBS = [name for name in vars(ts.Space) if not name.startswith("_")]
METHODS = [name for name in VERBS if callable(getattr(ts.Space, name))]


@pytest.mark.parametrize("verb", METHODS)
def test_a_verb_has_help_and_a_signature(verb):
    method = getattr(ts.Space, verb)
    assert len(method.__doc__) > 40
    parameters = inspect.signature(method).parameters
    assert next(iter(parameters)) == "self"
    if verb != "close":
        assert ">>> " in method.__doc__


@pytest.mark.parametrize("verb", METHODS)
def test_the_keywords_in_a_signature_are_those_that_the_verb_takes(space, verb):
    method = getattr(space, verb)
    parameters = inspect.signature(method).parameters.values()
    keywords = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    with pytest.raises(TypeError) as caught:
        method(nonsense=1)
    told = str(caught.value).partition("it takes: ")[2].rstrip(")")
    assert [name for name in told.split(", ") if name] == keywords


@pytest.mark.parametrize("verb", METHODS)
def test_the_help_of_a_verb_says_what_each_argument_is(verb):
    method = getattr(ts.Space, verb)
    told = method.__doc__
    for name in list(inspect.signature(method).parameters)[1:]:
        assert f"\n    {name}: " in told or "arguments are those of" in told, name


@pytest.mark.parametrize("verb", [verb for verb in METHODS if verb not in {"close", "flush"}])
def test_the_help_of_a_verb_says_in_place_what_an_early_end_does(verb):
    _, found, told = getattr(ts.Space, verb).__doc__.partition("\nIf the call ends early:\n")
    assert found
    ends = told.partition("\n\n")[0]
    waits = "timeout" in inspect.signature(getattr(ts.Space, verb)).parameters
    assert ("Timeout" in ends) or not waits
    assert "death of " in ends.lower() or "neither waits nor changes" in ends


VERBS_OF_TRANSACTIONS = [name for name in vars(ts.TransactionSpace) if not name.startswith("_")]


@pytest.mark.parametrize("verb", VERBS_OF_TRANSACTIONS)
def test_a_verb_of_a_transaction_has_help_and_the_signature_of_that_of_a_space(verb):
    method, of_space = getattr(ts.TransactionSpace, verb), getattr(ts.Space, verb)
    assert ">>> " in method.__doc__
    refused = {"timeout", "atomic", "progress"} if verb.startswith("put") else set()
    refused |= {"sync"}  # which the commit has
    parameters = inspect.signature(of_space).parameters.values()
    expected = [one for one in parameters if one.name not in refused]
    assert list(inspect.signature(method).parameters.values()) == expected


FUNCTIONS = [
    one for name in ts.__all__ if callable(one := getattr(ts, name)) and not inspect.isclass(one)
]
MAKERS = [one for one in vars(type(ts.F)).values() if inspect.ismethoddescriptor(one)]


@pytest.mark.parametrize(
    "one",
    [
        *(one for one in FUNCTIONS if one is not ts.F),
        *(one for one in MAKERS if not one.__name__.startswith("_")),
        *(ts.Claim, ts.Claim.put, ts.Explanation, ts.Formal, ts.Lease, ts.Template, ts.Transaction),
    ],
    ids=lambda one: one.__qualname__,
)
def test_what_the_package_has_shows_how_it_is_used(one):
    assert ">>> " in one.__doc__


def test_the_package_exports_what_it_lists():
    assert len(set(ts.__all__)) == len(ts.__all__)
    assert all(hasattr(ts, name) for name in ts.__all__)
    assert ts.__version__ == "0.1.0"
