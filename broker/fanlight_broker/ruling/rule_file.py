"""The file of routing rules, TOML or CSV, read into rules (docs/rules.md has all keys).

    [[rules]]
    name = "eu orders"
    topic = "orders.eu.#"              a filter, in the native syntax, or MQTT's after `mqtt:`
    where = "price > 100"              a selector; without one, every message of the topics
    salience = 10                      the smaller, the earlier
    to = "stock.$2.$1"                 the action, one of those in core/rule_actions.py

In CSV each of these is a column, and every other column is an attribute with conditions in its cells, as in a decision
table of matchcore. Every problem is found, not the first alone, and says where it is.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import matchcore
from fanlight_broker.config.values import parse, show
from fanlight_broker.core.errors import InvalidFilter
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_actions import ActionKind, RoutingRule, TopicTemplate
from fanlight_broker.core.rules import HeaderValue
from fanlight_broker.core.topics import SEPARATORS, named_filter, parse_filter
from fanlight_broker.parsing import did_you_mean, file_text
from fanlight_broker.ruling.rule_faults import circle
from fanlight_broker.wire.levels import PRIORITIES_MAX
from matchcore.decision_table import TableRow, read_table

FILE_BYTES_MAX: Final = 16 * 1024 * 1024  # 100,000 rules; a longer file is not one of rules
PROBLEMS_MAX: Final = 100  # that are listed; further ones are counted
PRIORITY_MOST: Final = PRIORITIES_MAX - 1
HEADER_KEY_BYTES_MAX: Final = 255  # of a native message (docs/native-protocol.md, section 3.3)
NAME_BYTES_MAX: Final = 255
INT_MOST: Final = 2**63
ANYTHING: Final = "#"
ACTIONS: Final = frozenset(ActionKind)
KEYS: Final = ("name", "topic", "where", "salience", *ActionKind)
IN_TABLE: Final = re.compile(r"(?:row 1(?:, column (.*?))?: )?(.*)", re.DOTALL)  # how a reason begins
HEADER_LINE: Final = re.compile(r"\s*\[\[\s*rules\s*\]\]")


class RuleFileError(Exception):
    """A file of rules that cannot be put in force. `problems` has a sentence for each, with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Row(NamedTuple):
    """A rule as it stands in the file."""

    place: str  # "line 4", or "rule 2"
    cells: Mapping[str, Any]
    table: bool  # other keys are attributes


class WrongRule(ValueError):
    """What is wrong with one rule."""


def read(path: Path, limits: Limits, *, archive: bool) -> list[RoutingRule]:
    """The rules of a file. Raises RuleFileError.

    archive  is there one?
    """
    try:
        text = file_text(path, FILE_BYTES_MAX)
    except ValueError as error:
        raise RuleFileError([str(error)]) from None
    return parse_rules(text, str(path), limits, archive=archive, is_csv=path.suffix.lower() == ".csv")


def parse_rules(
    text: str, name: str, limits: Limits, *, archive: bool = True, is_csv: bool = False
) -> list[RoutingRule]:
    """The rules of a file's text; `name` is for errors. Raises RuleFileError."""
    try:
        rows = list(_csv_rows(text) if is_csv else _toml_rows(text))
    except (ValueError, RecursionError, csv.Error) as error:
        raise RuleFileError([f"{name}: {error}"]) from None
    if len(rows) > limits.rules_max:
        raise RuleFileError([f"{name}: {len(rows)} rules; at most {limits.rules_max} (rules_max)"])
    rules: list[RoutingRule] = []
    problems: list[str] = []
    names: dict[str, str] = {}
    for number, row in enumerate(rows):
        try:
            rule = _rule(number, row, limits, archive)
            if rule.name is not None and names.setdefault(rule.name, row.place) != row.place:
                raise WrongRule(f"the rule of {names[rule.name]} has the same name")
        except WrongRule as error:
            own = row.cells.get("name")
            called = f"rule {own!r}" if isinstance(own, str) and own else f"rule {number + 1}"
            problems.append(f"{name}, {', '.join(dict.fromkeys([row.place, called]))}: {error}")
        else:
            rules.append(rule)
    if problems:
        more = [f"{name}: {len(problems) - PROBLEMS_MAX} further problems"] if len(problems) > PROBLEMS_MAX else []
        raise RuleFileError(problems[:PROBLEMS_MAX] + more)
    return rules


def _toml_rows(text: str) -> Iterator[Row]:
    import tomllib  # for those who have a file

    table = tomllib.loads(text)
    rows = table.pop("rules", [])
    if table:
        raise ValueError(f"there is nothing but [[rules]] in a file of rules; found {next(iter(table))!r}")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("`rules` is not a list of tables; begin each rule with a line [[rules]]")
    # tomllib keeps no lines. Those of the headers are found unless text of several lines looks like one.
    lines = [number for number, line in enumerate(text.split("\n"), 1) if HEADER_LINE.match(line)]
    known = len(lines) == len(rows)
    for number, row in enumerate(rows):
        yield Row(f"line {lines[number]}" if known else f"rule {number + 1}", row, table=False)


def _csv_rows(text: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    header = [column.strip() for column in next(lines, [])]
    if len(set(header)) < len(header):
        raise ValueError("two columns have the same name")
    if not all(header):
        raise ValueError("a column has no name")
    for cells in lines:
        if not cells:
            continue
        if len(cells) > len(header):
            raise ValueError(f"line {lines.line_num} has {len(cells)} cells, and the header {len(header)}")
        found = {column: cell for column, cell in zip(header, cells, strict=False) if cell.strip()}
        yield Row(f"line {lines.line_num}", found, table=True)


def _rule(number: int, row: Row, limits: Limits, archive: bool) -> RoutingRule:
    """One rule. Raises WrongRule."""
    cells = {key: cell for key, cell in row.cells.items() if not _is_off(key, cell)}
    if not row.table and (unknown := [key for key in cells if key not in KEYS]):
        raise WrongRule(f"there is no {unknown[0]!r} in a rule{did_you_mean(unknown[0], KEYS)}")
    given = [key for key in cells if key in ACTIONS]
    if len(given) != 1:
        found = ", ".join(given) or "none"
        raise WrongRule(f"a rule has one action, of {', '.join(ActionKind)}; this one has {found}")
    filter, syntax = named_filter(_text(cells, "topic") if "topic" in cells else ANYTHING)
    try:
        parse_filter(filter, syntax, limits)
    except InvalidFilter as error:
        raise WrongRule(f"topic: {error.text}") from None
    if filter.startswith(b"$"):
        raise WrongRule("topic: rules do not act on topics that begin with $")
    table = _conditions(cells)
    kind = ActionKind(given[0])
    template, seconds = None, 0.0
    headers: tuple[tuple[str, HeaderValue], ...] = ()
    match kind:
        case ActionKind.COPY | ActionKind.REPLACE:
            template = _template(kind, _text(cells, kind), filter, syntax, limits)
        case ActionKind.SET:
            headers = _headers(cells[kind])
        case ActionKind.PRIORITY:
            headers = (("priority", _priority(cells[kind])),)
        case ActionKind.DELAY:
            seconds = _delay(cells[kind], limits)
        case ActionKind.ARCHIVE if not archive:
            raise WrongRule("archive: this broker has no archive; set `archive` to a folder")
    return RoutingRule(
        number, row.place, _name(cells), filter, syntax, table.selector, table.salience, kind, template, headers,
        seconds,
    )


def _is_off(key: str, cell: object) -> bool:
    """A switch that is off is as one that is not there."""
    if key not in (ActionKind.DROP, ActionKind.ARCHIVE):
        return False
    try:
        return not parse(cell, bool, None)
    except ValueError as error:
        raise WrongRule(f"{key}: {error}") from None


def _conditions(cells: Mapping[str, Any]) -> TableRow:
    """The selector and the salience: of `where`, and of the columns that are attributes."""
    asked = {key: cell for key, cell in cells.items() if key in ("where", "salience") or key not in KEYS}
    try:
        return read_table([asked], "table")[0]
    except matchcore.InvalidSelector as error:
        column, reason = IN_TABLE.fullmatch(error.reason).groups()  # type: ignore[union-attr]
        said = matchcore.InvalidSelector(error.text, error.position, reason, error.advice)
        raise WrongRule(f"{column}: {said}" if column else str(said)) from None
    except ValueError as error:
        raise WrongRule(str(error)) from None


def _template(kind: ActionKind, text: str, filter: bytes, syntax: str, limits: Limits) -> TopicTemplate:
    """Where a rule sends a message."""
    target, own = named_filter(text)
    try:
        template = TopicTemplate(target, own)
    except ValueError as error:
        raise WrongRule(f"{kind}: {error}") from None
    if len(template.parts) > limits.topic_words_max or len(template.text) > limits.topic_bytes_max:
        raise WrongRule(f"{kind}: the topic is longer than topic_words_max and topic_bytes_max allow")
    words = filter.split(SEPARATORS[syntax]) if filter else []
    if b"#" not in words and template.words_least > len(words):
        raise WrongRule(f"{kind}: ${template.words_least}, and its topics have {len(words)} words")
    return template


def _text(cells: Mapping[str, Any], key: str) -> str:
    cell = cells[key]
    if not isinstance(cell, str) or not cell.strip():
        raise WrongRule(f"{key}: write it as a text, in quotes")
    return cell.strip()


def _name(cells: Mapping[str, Any]) -> str | None:
    if "name" not in cells:
        return None
    name = _text(cells, "name")
    if not name.isprintable() or len(name.encode()) > NAME_BYTES_MAX:
        raise WrongRule(f"a name is printable text of at most {NAME_BYTES_MAX} bytes")
    return name


def _headers(cell: object) -> tuple[tuple[str, HeaderValue], ...]:
    """Of `set`: a table; in CSV `name=value`, several with `;` between them, and values are text."""
    if isinstance(cell, str):
        pairs = [part.partition("=") for part in cell.split(";")]
        if not all(equals for _, equals, _ in pairs):
            raise WrongRule("set: write name=value; several with ; between them")
        found: dict[str, Any] = {name.strip(): value.strip() for name, _, value in pairs}
    elif isinstance(cell, dict) and cell:
        found = cell
    else:
        raise WrongRule("set: write a table of headers, such as { region = \"eu\" }")
    for name, value in found.items():
        _check_header(name, value)
    return tuple(found.items())


def _check_header(name: str, value: object) -> None:
    if not name or name.startswith("$") or "\0" in name or len(name.encode()) > HEADER_KEY_BYTES_MAX:
        raise WrongRule(f"set: {name!r} is no name of a header: 1 to {HEADER_KEY_BYTES_MAX} bytes, not with $ first")
    if isinstance(value, bool):
        return
    if isinstance(value, int) and -INT_MOST <= value < INT_MOST:
        return
    if isinstance(value, float) and math.isfinite(value):
        return
    if isinstance(value, str) and "\0" not in value and len(value.encode()) <= 65_535:
        return
    raise WrongRule(f"set: {name}: a header is a text, a number of 64 bits, true or false")


def _priority(cell: object) -> int:
    try:
        found = parse(cell, int, None)
    except ValueError as error:
        raise WrongRule(f"priority: {error}") from None
    if not isinstance(found, int) or not 0 <= found <= PRIORITY_MOST:
        raise WrongRule(f"priority: is 0 to {PRIORITY_MOST}, {PRIORITY_MOST} the most urgent")
    return found


def _delay(cell: object, limits: Limits) -> float:
    try:
        found = parse(cell, float, "seconds")
    except ValueError as error:
        raise WrongRule(f"delay: {error}") from None
    if not isinstance(found, float) or not 0 < found <= limits.delay_seconds_max:
        most = show(limits.delay_seconds_max, "seconds")
        raise WrongRule(f"delay: is above 0 and at most {most} (delay_seconds_max)")
    return found



def load(path: Path, limits: Limits, *, archive: bool) -> list[RoutingRule]:
    """The rules of a file, none of which lead in a circle as far as that is provable. Raises RuleFileError."""
    rules = read(path, limits, archive=archive)
    found = circle(rules)
    if found is not None:
        raise RuleFileError([f"{path}: {describe_circle(found)}"])
    return rules


def describe_circle(rules: Sequence[RoutingRule]) -> str:
    names = " -> ".join(str(rule) for rule in [*rules, rules[0]])
    return f"these rules send messages in a circle: {names}; give one a `where` that its own copies do not meet"
