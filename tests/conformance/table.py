"""The table of MQTT's normative statements, each with the tests that show it.

Statements are in mqtt_statements.toml. A test says which it shows by a mark, on itself or on one of its cases:

    @pytest.mark.mqtt("MQTT-3.1.0-1")               of both versions, where they have it
    @pytest.mark.mqtt("MQTT-3.1.2-22", version=3)   of 3.1.1 alone; 5 for 5.0

pytest itself finds the marks, by collecting the tests without running them. A mark that names no statement is an error.
"""

import contextlib
import io
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STATEMENTS: Final = HERE / "mqtt_statements.toml"
VERSIONS: Final = {3: "3.1.1", 5: "5.0"}
MARK: Final = "mark.mqtt("

INTRODUCTION: Final = """\
# Conformance to MQTT

Every normative statement of MQTT 3.1.1 and of MQTT 5.0, by its identifier in appendix B, in words of our own, with the
tests that show what the broker does. What binds clients alone has a test where the broker must see that one does not
keep to it. This page is made from the marks of the tests: `python -m tests.conformance > docs/mqtt-conformance.md`.
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A row."""

    version: str
    identifier: str
    binds: str
    says: str
    why: str = ""  # why there is no test

    @property
    def section(self) -> str:
        return self.identifier.removeprefix("MQTT-").rpartition("-")[0].removesuffix(".0")


@dataclass(frozen=True, slots=True, order=True)
class Shown:
    """A test, or one case of it: a sentence, and the file it is in."""

    path: str
    sentence: str


Key = tuple[str, str]  # version and identifier
Index = dict[Key, list[Shown]]


class UnknownStatement(ValueError):
    """A mark names what its version does not have."""


def statements(path: Path = STATEMENTS) -> dict[Key, Statement]:
    """All statements, in the order of the file."""
    with path.open("rb") as file:
        versions = tomllib.load(file)
    return {
        (version, identifier): Statement(version, identifier, **row)
        for version, rows in versions.items()
        for identifier, row in rows.items()
    }


class Collector:
    """A plugin of pytest that keeps what was collected."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def marked_files(folder: Path) -> list[Path]:
    """The test files with a mark in them: to collect all others takes long."""
    files = sorted(folder.rglob("test_*.py"))
    return [path for path in files if MARK in path.read_text(encoding="utf-8")]


def collect(files: Iterable[Path]) -> list[pytest.Item]:
    """The tests of some files. Raises RuntimeError with pytest's words if they cannot be collected."""
    collector = Collector()
    said = io.StringIO()
    arguments = ["--collect-only", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *map(str, files)]
    with contextlib.redirect_stdout(said):
        status = pytest.main(arguments, plugins=[collector])
    if status != pytest.ExitCode.OK:
        raise RuntimeError(said.getvalue())
    return collector.items


def keys(mark: pytest.Mark, known: dict[Key, Statement]) -> Iterator[Key]:
    """The statements that a mark names. Raises UnknownStatement."""
    (identifier,) = mark.args
    version = mark.kwargs.get("version")
    named = [(name, identifier) for number, name in VERSIONS.items() if version in (None, number)]
    found = [key for key in named if key in known]
    if not found or set(mark.kwargs) - {"version"}:
        raise UnknownStatement(f"no statement {identifier} in {' or '.join(v for v, _ in named) or version}")
    yield from found


def index(items: Iterable[pytest.Item], known: dict[Key, Statement]) -> Index:
    """Which tests show a statement; of a parametrized test the marked cases, or all as one."""
    shown: dict[Key, set[Shown]] = defaultdict(set)
    for item in items:
        call = getattr(item, "callspec", None)
        of_case = list(call.marks) if call else []
        path = item.path.relative_to(ROOT).as_posix()
        sentence = getattr(item, "originalname", item.name).removeprefix("test_").replace("_", " ")
        for mark in item.iter_markers("mqtt"):
            case = f" ({call.id})" if call and mark in of_case else ""
            for key in keys(mark, known):
                shown[key].add(Shown(path, sentence + case))
    return {key: sorted(found) for key, found in shown.items()}


def missing(known: dict[Key, Statement], shown: Index) -> list[Statement]:
    """The statements that bind a server, have no test, and no reason why."""
    return [one for key, one in known.items() if one.binds != "client" and not one.why and key not in shown]


def render(known: dict[Key, Statement], shown: Index) -> str:
    """The page."""
    lines = [INTRODUCTION]
    for version in dict.fromkeys(key[0] for key in known):
        rows = [one for one in known.values() if one.version == version]
        tested = sum((version, one.identifier) in shown for one in rows)
        duties = [one for one in rows if one.binds != "client"]
        lines += [
            f"## MQTT {version}",
            "",
            f"{len(rows)} statements, {len(duties)} of them bind a server. {tested} have tests.",
            "",
            "| statement | binds | what it says | shown by |",
            "|---|---|---|---|",
        ]
        for one in rows:
            cell = "<br>".join(cells(shown.get((version, one.identifier), []), one))
            lines.append(f"| {one.identifier} | {one.binds} | {one.says} | {cell} |")
        lines.append("")
    return "\n".join(lines)


def cells(found: list[Shown], one: Statement) -> list[str]:
    """What stands behind a statement: its tests, or why there are none."""
    if found:
        return [f"[{escaped(test.sentence)}](../{test.path})" for test in found]
    if one.why:
        return [one.why]
    return ["binds clients only" if one.binds == "client" else "**no test yet**"]


def escaped(text: str) -> str:
    """Text as a link in a table's cell."""
    for mark in "\\|[]*_<>`":
        text = text.replace(mark, "\\" + mark)
    return text
