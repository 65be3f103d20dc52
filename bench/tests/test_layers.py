"""The folders of the suite are layers: each imports from those below it only."""

import ast
import re
from pathlib import Path

import tupelo_bench

ROOT = Path(tupelo_bench.__file__).parent
LAYERS = re.findall(r"^\* `(\w+)/`", tupelo_bench.__doc__ or "", re.MULTILINE)


def imported(tree):
    """Return the modules of the suite that a module imports when it runs, not for its types."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        found += imported(node)
    return [module for module in found if module.startswith(f"{tupelo_bench.__name__}.")]


def test_every_folder_imports_from_lower_layers_only():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert set(LAYERS) == folders
    upwards = [
        f"{path.relative_to(ROOT)} imports {module}"
        for height, layer in enumerate(LAYERS)
        for path in (ROOT / layer).rglob("*.py")
        for module in imported(ast.parse(path.read_text(encoding="utf-8")))
        if module.split(".")[1] in LAYERS[:height]
    ]
    assert upwards == []
