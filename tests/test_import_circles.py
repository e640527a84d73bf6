"""No circles of imports in the core and the protocols, imports for types alone included.

An import below `if TYPE_CHECKING` is no import at run time, and a dependency all the same: who reads one of the modules
has to read the other. `graphlib` finds a circle, and names it.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "broker"
FOLDERS = ("fanlight_broker/core", "fanlight_broker/protocols/mqtt", "fanlight_broker/protocols/native")


def imported_by(text: str) -> set[str]:
    """The modules, and what may be modules, that a Python file imports anywhere."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imports_within(folder: Path, root: Path) -> dict[str, set[str]]:
    """Which modules of a folder import which others of it; a .pyi speaks for its compiled module."""
    texts = {
        ".".join(path.relative_to(root).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in folder.iterdir()
        if path.suffix in (".py", ".pyi") and path.stem != "__init__"
    }
    return {module: imported_by(text) & texts.keys() for module, text in texts.items()}


def test_an_import_for_types_counts(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("from two import Two\n")
    (tmp_path / "two.pyi").write_text("if TYPE_CHECKING:\n    import one\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports_within(tmp_path, tmp_path)).prepare()


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_two_modules_need_each_other(folder: str) -> None:
    imports = imports_within(ROOT / folder, ROOT)
    assert any(imports.values())
    TopologicalSorter(imports).prepare()  # raises CycleError with the modules of a circle
