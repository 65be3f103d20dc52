"""What `import tupelo` costs: it loads no module that only some programs need."""

import subprocess
import sys

HEAVY = [
    "asyncio",
    "datetime",
    "decimal",
    "inspect",
    "logging",
    "multiprocessing",
    "numpy",
    "pickle",
    "re",
    "subprocess",
    "threading",
    "traceback",
    "typing",
    "uuid",
]


def modules_after(code):
    finished = subprocess.run(
        [sys.executable, "-S", "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    return set(finished.stdout.split())


def test_importing_loads_no_heavy_module():
    loaded = modules_after("import tupelo") - modules_after("")
    assert loaded.isdisjoint(HEAVY), loaded


def test_using_a_space_loads_no_heavy_module():
    code = "import tupelo as ts; s = ts.connect('mem://x'); s.put('a', 1, [2.0], {'k': b''});"
    code += "s.take('a', ts.F > 0, list, dict)"
    assert modules_after(code).isdisjoint(set(HEAVY) - {"typing"})
