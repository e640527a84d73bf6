"""One name, one class: no two classes of a package share a name, so that a name alone says what is meant.

Python classes are read with `ast`, nested and private ones included; of .pyx and .pxi files the lines that open one.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "matchcore/matchcore",
    "broker/fanlight_broker",
    "archive/fanlight_archive",
    "pipeline/fanlight_spark",
    "clients/python/src/fanlight",
    "bench/fanlight_bench",
)
# The blocking face of the SDK has the classes of the asynchronous one under the same names: an import is all that
# differs for its user.
BLOCKING_FACE = ("sync.py", "sync_message.py")

COMPILED_CLASS = re.compile(r"^[ \t]*(?:cdef[ \t]+|cpdef[ \t]+)?class[ \t]+(\w+)", re.MULTILINE)

# Still to be renamed. This shrinks: a name that is unique by now must leave the list.
SHARED: dict[str, set[str]] = {
    "pipeline/fanlight_spark": {
        "Settings",
    },
    "clients/python/src/fanlight": {
        "Reading",
    },
    "bench/fanlight_bench": {
        "Asked",
        "Case",
        "Change",
        "Group",
        "Idle",
        "Peer",
        "Plan",
        "Usage",
        "Way",
        "Workload",
    },
}


def classes_of(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    return set(COMPILED_CLASS.findall(text))


def files_by_class(package: Path) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".pyx", ".pxi") and path.name not in BLOCKING_FACE:
            for name in classes_of(path):
                found[name].add(path.relative_to(package).as_posix())
    return found


def test_python_and_cython_classes_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def make():\n    class Inner:\n        class _Private: ...\n")
    (tmp_path / "b.pyx").write_text("@cython.final\ncdef class Inner(Base):\n    pass\n\nclass Plain:\n    pass\n")
    (tmp_path / "c.pxi").write_text("cdef class Part:\n    '''A class of its own.'''\n")
    assert files_by_class(tmp_path) == {
        "Inner": {"a.py", "b.pyx"}, "_Private": {"a.py"}, "Plain": {"b.pyx"}, "Part": {"c.pxi"},
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_classes_of_a_package_share_a_name(package: str) -> None:
    found = files_by_class(ROOT / package)
    assert found, "no classes: has the package moved?"
    shared = {name: sorted(files) for name, files in found.items() if len(files) > 1}
    allowed = SHARED.get(package, set())
    assert not shared.keys() - allowed, {name: shared[name] for name in shared.keys() - allowed}
    assert not allowed - shared.keys(), f"unique now, so take them off the list: {sorted(allowed - shared.keys())}"
