"""No circles of imports, those for types alone and those of compiled modules included.

An import below `if TYPE_CHECKING`, or in a stub, is no import at run time, and a dependency all the same: who reads one
of the modules has to read the other. What is left is listed with its reason, import by import; the test fails when one
is added and when one is not needed any more.
"""

import ast
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SDK = "clients/python/src/fanlight"
# Whole distributions. Their packages are looked at as one graph: a circle may lead through several.
TREES = (
    "matchcore/matchcore", "permissions/fanlight_permissions", "broker/fanlight_broker", "archive/fanlight_archive",
    "pipeline/fanlight_spark", "bench/fanlight_bench", SDK,
)  # fmt: skip
SUFFIXES = (".py", ".pyi", ".pyx", ".pxd")
COMPILED_IMPORT = re.compile(
    r"^[ \t]*(?:from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|[^#\n]*)|c?import\s+([\w.]+))", re.MULTILINE
)

LISTS = "stubs only: the type of what is in the ledger's lists of work for the end of the turn"
CLIENT = "types only: it is a part of the client, or given to a function of the user's, and has a reference back"
# (importing module, imported module): reason. Without these imports no circle is left.
KNOWN: Mapping[str, Mapping[tuple[str, str], str]] = {
    "broker/fanlight_broker": {
        ("fanlight_broker.wire.ledger", "fanlight_broker.wire.outbox"): LISTS,
        ("fanlight_broker.wire.ledger", "fanlight_broker.wire.target"): LISTS,
    },
    SDK: {
        ("fanlight.inbox", "fanlight.client"): CLIENT,
        ("fanlight.options", "fanlight.client"): CLIENT,
        ("fanlight.queue", "fanlight.client"): CLIENT,
        ("fanlight.replay", "fanlight.client"): CLIENT,
        ("fanlight.subscription", "fanlight.client"): CLIENT,
        ("fanlight.message", "fanlight.subscription"): "types only: Message.subscription",
        ("fanlight.subscription", "fanlight.subscriptions"): "types only: `unsubscribe` ends it there",
        ("fanlight.replay", "fanlight.subscriptions"): "types only: `unsubscribe` ends it there",
        ("fanlight.sync_message", "fanlight.sync"): "types only: what `Message.reply` and Message.subscription need",
        ("fanlight.sync_message", "fanlight.sync_subscription"): "types only: Message.subscription",
        ("fanlight.sync_subscription", "fanlight.sync"): "types only: the client that a subscription belongs to",
        ("fanlight.cli.top_rich", "fanlight.cli.top"): "its number formats; top imports the display when it has rich",
    },
}


def imported_by(path: Path, module: str) -> set[str]:
    """The modules, and what may be modules, that a file imports or cimports anywhere."""
    text, found = path.read_text(encoding="utf-8"), set[str]()
    if path.suffix in (".pyx", ".pxd"):
        for package, names, alone in COMPILED_IMPORT.findall(text):
            found |= {package, alone} | {f"{package}.{name}" for name in re.findall(r"\w+", names)}
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            name = resolve_name("." * node.level + (node.module or ""), module.rpartition(".")[0])
            found |= {name} | {f"{name}.{alias.name}" for alias in node.names}
    return found


def imports_within(folder: Path) -> dict[str, set[str]]:
    """Which modules of a package import which others of it; the files of a compiled module are one."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.stem != "__init__":
            module = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            found.setdefault(module, set()).update(imported_by(path, module))
    return {module: (imports & found.keys()) - {module} for module, imports in found.items()}


def reachable(imports: Mapping[str, set[str]], start: str) -> set[str]:
    """What a module needs, itself only if it is in a circle."""
    found, rest = set[str](), [start]
    while rest:
        new = imports[rest.pop()] - found
        found |= new
        rest += new
    return found


def test_imports_for_types_count(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.py").write_text("from .two import Two\n")
    (package / "two.pyi").write_text("if TYPE_CHECKING:\n    import package.one\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports_within(package)).prepare()


def test_cimports_count(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.pyx").write_text("from package.two cimport (\n    Two,\n)\n")
    (package / "two.pxd").write_text("from package cimport (\n    one,\n)\n")
    assert imports_within(package) == {"package.one": {"package.two"}, "package.two": {"package.one"}}


@pytest.mark.parametrize("tree", TREES)
def test_no_two_modules_need_each_other(tree: str) -> None:
    imports = imports_within(ROOT / tree)
    assert any(imports.values())
    for importing, imported in KNOWN.get(tree, {}):
        imports[importing].discard(imported)
    TopologicalSorter(imports).prepare()  # raises CycleError with the modules of a circle


@pytest.mark.parametrize("tree", KNOWN)
def test_every_known_exception_is_needed(tree: str) -> None:
    imports = imports_within(ROOT / tree)
    for importing, imported in KNOWN[tree]:
        imports[importing].discard(imported)
    for importing, imported in KNOWN[tree]:
        restored = {**imports, importing: imports[importing] | {imported}}
        whole = imports_within(ROOT / tree)
        assert imported in whole[importing], f"{importing} does not import {imported} any more"
        assert importing in reachable(restored, importing), f"{importing} may import {imported}: there is no circle"


def test_compiled_modules_have_no_circle_of_cimports() -> None:
    stubs = [pair for pair, reason in KNOWN["broker/fanlight_broker"].items() if reason.startswith("stubs only")]
    for importing, imported in stubs:
        for suffix in (".pyx", ".pxd"):
            path = ROOT / "broker" / Path(*importing.split(".")).with_suffix(suffix)
            assert imported not in imported_by(path, importing)
