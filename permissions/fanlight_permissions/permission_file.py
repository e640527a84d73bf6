"""The file of permissions, TOML or CSV, read into rules (docs/permissions.md has all keys).

    [[allow]]
    group = "sensors"                  who: user, group, client, certificate, address, protocol, listener
    publish = "site/%u/#"              what, on which topics: connect, publish, subscribe, retain, will, request,
    subscribe = ["site/%u/cmd/+"]      replay, queue, everything, admin

    [[deny]]
    address = "10.0.0.0/8"
    connect = true

    [default]                          what is decided where no rule applies
    connect = "allow"

In CSV each of these is a column, and `effect` is allow or deny; a cell has one value. Every problem is found, not the
first alone, and says where it is.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import matchcore
from fanlight_permissions.class_grant import DEFAULT
from fanlight_permissions.csv_rows import EFFECTS, FILTERS, KEYS, PLACES, GivenRule, csv_rows
from fanlight_permissions.decisions import Action
from fanlight_permissions.namespace_entries import ENTRIES_MAX, NamespaceEntries, conditions_of
from fanlight_permissions.permission_rule import (
    ACTION_BITS,
    BITS,
    KEYS_OF_ACTIONS,
    LETTERS,
    ON_MESSAGES,
    STARRED,
    Pattern,
    PermissionRule,
    Who,
    WrongPattern,
    pattern_of,
    value_of,
)
from fanlight_permissions.plain_rows import PlainRows
from fanlight_permissions.reading import TableLimits, did_you_mean, file_text, never, switch
from fanlight_permissions.table import CLOSED, Effects, PermissionTable, in_order
from fanlight_permissions.toml_rules import given_rules, with_one_header
from fanlight_permissions.topics import text_of
from matchcore.patterns import selector_of
from matchcore.selector import Selector

FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # 1,000,000 rules; a longer file is not one of permissions
PROBLEMS_MAX: Final = 100  # that are listed; further ones are counted
NAME_BYTES_MAX: Final = 255
VALUES_MAX: Final = 1_000  # of one attribute, or filters of one action, in one rule
FORGOTTEN_AT_ONCE: Final = 1_000
PAUSE_EVERY: Final = 256  # rows, some 1 ms
NO_TOPIC: Final = Pattern(b"", b"", "amqp")
ADMIN: Final = {"read": Action.ADMIN_READ, "write": Action.ADMIN_WRITE}
NAMES: Final = tuple(f"%{letter}" for letter in LETTERS)


class PermissionFileError(Exception):
    """A file of permissions that cannot be put in force. `problems` has a sentence for each, with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class PermissionFile(NamedTuple):
    rules: list[PermissionRule]
    defaults: Effects
    namespaces: NamespaceEntries | None = None


class WrongPermission(ValueError):
    """What is wrong with one rule."""


def load(path: Path, limits: TableLimits, pause: Callable[[], None] = never) -> PermissionTable:
    """The permissions of a file, ready to decide. Raises PermissionFileError.

    pause  called now and then, every 1 ms or so
    """
    text = _text_of(path, pause)
    pause()
    if _is_csv(path) and "salience" not in text[: text.find("\n")]:
        table = _table_of_rows(text, str(path), limits, pause)
    else:
        file = parse_permissions(text, str(path), limits, pause, is_csv=_is_csv(path))
        count, rules = len(file.rules), in_order(file.rules)
        if rules is not file.rules:
            file.rules.clear()
        table = _table(str(path), _drained(rules), count, file.defaults, limits, pause, waiting=True)
        table.namespaces = file.namespaces
    table.parties.forget(pause)
    return table


def _table_of_rows(text: str, name: str, limits: TableLimits, pause: Callable[[], None]) -> PermissionTable:
    """Of a CSV file without saliences, whose rules come in their order: none of them is kept meanwhile."""
    reading = RuleReading(name, limits)
    try:
        rules = reading.rules(csv_rows(text, plain=True))
        count = min(text.count("\n"), limits.permissions_max)
        pause()
        table = PermissionTable(rules, count, CLOSED, limits, pause, waiting=True)
    except (ValueError, RecursionError, csv.Error) as error:
        raise PermissionFileError([f"{name}: {error}"]) from None
    reading.check(pause)
    return _checked(name, table)


def _drained(rules: list[PermissionRule]) -> Iterator[PermissionRule]:
    """Each rule, which is freed then: to free all at once would stop everything for 0.1 s if there are 100,000."""
    rules.reverse()
    while rules:
        yield rules.pop()


def compile_permissions(
    file: PermissionFile, name: str, limits: TableLimits, pause: Callable[[], None] = never
) -> PermissionTable:
    """The table of these rules; `name` is for errors. Raises PermissionFileError."""
    table = _table(name, in_order(file.rules), len(file.rules), file.defaults, limits, pause)
    table.namespaces = file.namespaces
    return table


def _table(
    name: str, rules: Iterable[PermissionRule], count: int, defaults: Effects, limits: TableLimits,
    pause: Callable[[], None], *, waiting: bool = False,
) -> PermissionTable:
    pause()
    return _checked(name, PermissionTable(rules, count, defaults, limits, pause, waiting=waiting))


def _checked(name: str, table: PermissionTable) -> PermissionTable:
    if table.invalid:
        raise PermissionFileError(_listed(name, [
            f"{name}, {rule.place}: {text_of(error)}" for rule, error in table.invalid
        ]))
    return table


def read(path: Path, limits: TableLimits, pause: Callable[[], None] = never) -> PermissionFile:
    """The rules of a file. Raises PermissionFileError. What is wrong with filters is found when they are compiled."""
    text = _text_of(path, pause)
    pause()
    return parse_permissions(text, str(path), limits, pause, is_csv=_is_csv(path))


def _text_of(path: Path, pause: Callable[[], None]) -> str:
    try:
        return file_text(path, FILE_BYTES_MAX, pause)
    except ValueError as error:
        raise PermissionFileError([str(error)]) from None


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def parse_permissions(
    text: str, name: str, limits: TableLimits, pause: Callable[[], None] = never, *, is_csv: bool = False
) -> PermissionFile:
    """The rules of a file's text; `name` is for errors. Raises PermissionFileError."""
    try:
        defaults, namespaces, rows = (CLOSED, None, csv_rows(text)) if is_csv else _toml_rows(text, pause)
        reading = RuleReading(name, limits)
        rules: list[PermissionRule] = []
        for rule in reading.rules(rows):
            if len(rules) % PAUSE_EVERY == PAUSE_EVERY - 1:
                pause()
            assert isinstance(rule, PermissionRule)
            rules.append(rule)
        reading.check(pause)
        return PermissionFile(rules, defaults, namespaces)
    except (ValueError, RecursionError, csv.Error) as error:
        raise PermissionFileError([f"{name}: {error}"]) from None


class RuleReading:
    """The rules of rows, as they come, until something is wrong; then the rows are checked only."""

    def __init__(self, name: str, limits: TableLimits) -> None:
        self._name = name
        self._most = limits.permissions_max
        self._problems: list[str] = []
        self._names: dict[str, int] = {}
        self._count = self._filters = 0

    def rules(self, rows: Iterable[GivenRule | PermissionRule | PlainRows]) -> Iterator[PermissionRule | PlainRows]:
        for row in rows:
            rule = self._rule(row) if isinstance(row, GivenRule) else row
            if rule is None:
                continue
            if isinstance(rule, PlainRows):
                self._count += len(rule.lines)
                self._filters += len(rule.lines)
            else:
                self._count += 1
                self._filters += len(rule.patterns)
            if not self._problems and self._filters <= self._most:
                yield rule

    def _rule(self, row: GivenRule) -> PermissionRule | None:
        try:
            rule = _rule(self._count, row)
            if rule.name is not None and self._names.setdefault(rule.name, row.line) != row.line:
                raise WrongPermission(f"the rule of line {self._names[rule.name]} has the same name")
        except WrongPermission as error:
            own = row.cells.get("name")
            called = f", rule {own!r}" if isinstance(own, str) and own else ""
            self._problems.append(f"{self._name}, line {row.line}{called}: {error}")
            return None
        return rule

    def check(self, pause: Callable[[], None]) -> None:
        """All rules are read. Raises PermissionFileError."""
        if self._problems:
            raise PermissionFileError(_listed(self._name, self._problems))
        if self._filters > self._most:
            raise PermissionFileError([
                f"{self._name}: {self._count} rules with {self._filters} filters; at most {self._most} "
                "(permissions_max)"
            ])
        while self._names:  # 100,000 would be freed in one step
            for _ in range(min(len(self._names), FORGOTTEN_AT_ONCE)):
                self._names.popitem()
            pause()


def _listed(name: str, problems: Sequence[str]) -> list[str]:
    more = [f"{name}: {len(problems) - PROBLEMS_MAX} further problems"] if len(problems) > PROBLEMS_MAX else []
    return [*problems[:PROBLEMS_MAX], *more]


def _toml_rows(
    text: str, pause: Callable[[], None]
) -> tuple[Effects, NamespaceEntries | None, Iterator[GivenRule]]:
    import tomllib  # for those who have a file

    text, headers = with_one_header(text, pause)
    table = tomllib.loads(text)
    rows = table.pop("rule", [])
    defaults = _defaults(table.pop("default", {}))
    namespaces = _namespaces(table.pop("namespace", []))
    for known in EFFECTS:
        if known in table:
            raise ValueError(f"begin each rule with a line [[{known}]], without anything else in it")
    if table:
        other = next(iter(table))
        raise ValueError(
            f"there is no {other!r} in a file of permissions, but [[allow]], [[deny]], [[namespace]] and [default]"
        )
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or len(rows) != len(headers):
        raise ValueError("begin each rule with a line [[allow]] or [[deny]], and have no such line inside of a text")
    return defaults, namespaces, given_rules(headers, rows)


def _namespaces(rows: object) -> NamespaceEntries | None:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("begin each entry of a namespace with a line [[namespace]]")
    if len(rows) > ENTRIES_MAX:
        raise ValueError(f"{len(rows)} entries [[namespace]]; at most {ENTRIES_MAX}")
    entries = NamespaceEntries()
    for number, row in enumerate(rows, 1):
        try:
            name = row.get("name")
            if not isinstance(name, str):
                raise ValueError('give it a name, such as name = "acme"')
            entries.insert(who_of(conditions_of(row)), name)
        except ValueError as error:
            raise ValueError(f"[[namespace]] {number}: {error}") from None
    return entries if rows else None


def _defaults(section: object) -> Effects:
    if not isinstance(section, dict):
        raise ValueError("[default] is a section, such as [default] and connect = \"deny\" in the next line")
    found = dict(CLOSED)
    for key, effect in section.items():
        if key not in KEYS_OF_ACTIONS:
            raise ValueError(f"[default]: there is no {key!r}{did_you_mean(str(key), KEYS_OF_ACTIONS)}")
        if effect not in EFFECTS:
            raise ValueError(f"[default]: {key} is \"allow\" or \"deny\"")
        found.update(dict.fromkeys(KEYS_OF_ACTIONS[key], EFFECTS[effect]))
    return found


def _rule(number: int, row: GivenRule) -> PermissionRule:
    """One rule. Raises WrongPermission."""
    name: str | None = None
    where: Selector | None = None
    salience: int | float = 0
    who: list[tuple[str, str | tuple[str, ...]]] = []
    found: list[tuple[int, Pattern]] = []
    for key, cell in row.cells.items():
        if key in FILTERS and type(cell) is str and (text := cell.strip()):  # the usual case, without two calls
            try:
                found.append((ACTION_BITS[key], pattern_of(text)))
            except WrongPattern as error:
                raise WrongPermission(f"{key}: {error}") from None
        elif key in ACTION_BITS:
            found += _patterns(key, cell)
        elif key in PLACES:
            who.append((key, cell if isinstance(cell, str) else tuple(_texts(key, cell))))
        elif key == "name":
            name = name_of(cell)
        elif key == "salience":
            salience = salience_of(cell)
        elif key == "where":
            where = _where(cell)
        else:
            raise WrongPermission(f"there is no {key!r} in a rule{did_you_mean(key, KEYS)}")
    if not found:
        does = "allows" if row.allow else "denies"
        raise WrongPermission(f"it {does} nothing; give it one of {', '.join(KEYS_OF_ACTIONS)}")
    patterns = tuple(found) if len(found) == 1 else _joined(found)
    if where is not None and any(bits & ~ON_MESSAGES for bits, _ in patterns):
        raise WrongPermission(
            "where: is about messages that somebody publishes; put publish, retain, will or request in this rule, and "
            "the rest in another. Who subscribes sets a selector of its own"
        )
    return PermissionRule(number, row.line, name, row.allow, who_of(tuple(who)), patterns, salience, where)


def _joined(found: Sequence[tuple[int, Pattern]]) -> tuple[tuple[int, Pattern], ...]:
    """Each pattern once, with all that it is for."""
    actions: dict[Pattern, int] = {}
    for bits, pattern in found:
        actions[pattern] = actions.get(pattern, 0) | bits
    return tuple((bits, pattern) for pattern, bits in actions.items())


def _patterns(key: str, cell: object) -> list[tuple[int, Pattern]]:
    if key == "connect":
        return [(ACTION_BITS[key], NO_TOPIC)] if _is_true(key, cell) else []
    if key == "admin":
        return [(_admin(each), NO_TOPIC) for each in _texts(key, cell)]
    try:
        return [(ACTION_BITS[key], pattern_of(each)) for each in _texts(key, cell)]
    except WrongPattern as error:
        raise WrongPermission(f"{key}: {error}") from None


def _admin(text: str) -> int:
    if text not in ADMIN:
        raise WrongPermission(f"admin: {text!r} is not read or write")
    return BITS[ADMIN[text]]


def _is_true(key: str, cell: object) -> bool:
    try:
        return switch(cell)
    except ValueError as error:
        raise WrongPermission(f"{key}: {error}") from None


def _texts(key: str, cell: object) -> list[str]:
    if isinstance(cell, str) and (text := cell.strip()):
        return [text]
    if not isinstance(cell, list) or not cell or not all(isinstance(text, str) and text.strip() for text in cell):
        raise WrongPermission(f"{key}: write a text in quotes, or a list of texts")
    if len(cell) > VALUES_MAX:
        raise WrongPermission(f"{key}: {len(cell)} values; at most {VALUES_MAX} in one rule")
    return [text.strip() for text in cell]


@lru_cache(1_024)  # six tuples each, which stay; in a large table many rules are of the same users and groups
def who_of(cells: tuple[tuple[str, str | tuple[str, ...]], ...]) -> Who:
    """Raises WrongPermission."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for attribute, cell in sorted(cells, key=lambda each: PLACES[each[0]]):
        texts = _texts(attribute, cell) if isinstance(cell, str) else cell
        found.append((attribute, tuple(sorted({_value(attribute, text) for text in texts}))))
    return tuple(found)


def _value(attribute: str, text: str) -> str:
    if any(name in text for name in NAMES):
        raise WrongPermission(f"{attribute}: {text!r}: %u, %c and %g stand in filters alone")
    if "*" in text[:-1] or (text.endswith("*") and attribute not in STARRED):
        raise WrongPermission(f"{attribute}: {text!r}: a * stands at the end alone, of {', '.join(sorted(STARRED))}")
    try:
        return value_of(attribute, text)
    except ValueError as error:
        raise WrongPermission(f"{attribute}: {error}") from None


def name_of(cell: object) -> str:
    name = cell.strip() if isinstance(cell, str) else ""
    if not name or not name.isprintable() or len(name.encode()) > NAME_BYTES_MAX:
        raise WrongPermission(f"a name is printable text of at most {NAME_BYTES_MAX} bytes")
    if name == DEFAULT or re.fullmatch(r"(line|own rule) \d+", name):
        raise WrongPermission(f"the name {name!r} is that of another rule, or of the default")
    return name


def salience_of(cell: object) -> int | float:
    try:
        if isinstance(cell, str):
            cell = int(cell) if re.fullmatch(r"[+-]?\d{1,18}", cell) else float(cell)
    except ValueError:
        pass
    if isinstance(cell, (int, float)) and not isinstance(cell, bool) and cell == cell:
        return cell
    raise WrongPermission("salience: is a number; the smaller, the earlier")


def _where(cell: object) -> Selector:
    if not isinstance(cell, (str, dict)):
        raise WrongPermission("where: write a selector, such as \"price > 100\"")
    try:
        return _selector(cell) if isinstance(cell, str) else selector_of(cell)
    except matchcore.InvalidSelector as error:
        raise WrongPermission(f"where: {error}") from None


@lru_cache(256)  # many rules ask the same
def _selector(text: str) -> Selector:
    """Raises InvalidSelector."""
    return selector_of(text)
