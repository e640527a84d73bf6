"""What Spark's Python workers run begins with `workers.settle()`, which takes a fifth off the time of a task."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "pipeline" / "fanlight_spark"
IN_WORKERS = ("mapInArrow", "applyInArrow")


def given(tree: ast.Module) -> Iterator[str]:
    """The names of functions that workers are given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IN_WORKERS:
            function = node.args[0]
            if isinstance(function, ast.Lambda):
                assert isinstance(function.body, ast.Call)
                function = function.body.func
            assert isinstance(function, ast.Name)
            yield function.id


def sources() -> list[Path]:
    """Files that give workers something to run."""
    return [
        path for path in sorted(PACKAGE.rglob("*.py")) if any(f".{name}(" in path.read_text() for name in IN_WORKERS)
    ]


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.stem)
def test_what_workers_run_settles_first(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = set(given(tree))
    assert names
    settled = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(line) == "workers.settle()" for line in node.body)
    }
    assert names <= settled
