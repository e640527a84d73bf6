"""The file of quotas, TOML, read into the quotas of principals (docs/quotas.md).

    [[quota]]
    group = "sensors"              who: user, group, certificate, address, protocol, listener; none: everybody
    connections = 2                how much: by the names of core/quota.py
    publish_messages = 10          a second
    over_rate = "refuse"

The first entry whose conditions are met, by salience and then in the order of the file, is a client's quota. What is
known of the user alone (users file, token, HTTP hook) goes before it, name by name.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fanlight_broker.core.permissions import Asker
from fanlight_broker.core.quota import NO_QUOTA, InvalidQuota, Quota, quota_of
from fanlight_broker.parsing import file_text
from fanlight_permissions.parties import EVERYBODY, Parties
from fanlight_permissions.permission_file import WrongPermission, name_of, salience_of, who_of
from fanlight_permissions.permission_rule import ATTRIBUTES

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
ENTRIES_MAX: Final = 10_000
# Quotas are of a user or an address, and not of one client: another client of the same user may be called anything.
CONDITIONS: Final = tuple(attribute for attribute in ATTRIBUTES if attribute != "client")


class QuotaFileError(Exception):
    """A file of quotas that cannot be put in force. `problems` has a sentence for each, with its place."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Entry:
    """One quota of the file, and whose it is."""

    label: str
    salience: float
    entries: Mapping[str, object]
    quota: Quota


class QuotaTable:
    """Quotas that do not change. It is core.quota.Quotas."""

    empty = False

    def __init__(self) -> None:
        self._parties = Parties()
        self._first: dict[int, tuple[float, int]] = {}  # by party: the order of its first entry
        self._entries: dict[tuple[float, int], Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def insert(self, who: Any, entry: Entry) -> None:
        order = entry.salience, len(self._entries)
        party = self._parties.number(who) if who else EVERYBODY
        self._first[party] = min(self._first.get(party, order), order)
        self._entries[order] = entry

    def entry_of(self, asker: Asker) -> Entry | None:
        """The entry that holds for a client; None: no quota does."""
        orders = [self._first[party] for party in self._parties.of(asker) if party in self._first]
        return self._entries[min(orders)] if orders else None

    def of(self, asker: Asker, own: Mapping[str, int]) -> Quota:
        entry = self.entry_of(asker)
        if not own:
            return entry.quota if entry is not None else NO_QUOTA
        return quota_of({**(entry.entries if entry is not None else {}), **own}, f"user {asker.user}")


def load(path: Path) -> QuotaTable:
    """The quotas of a file. Raises QuotaFileError."""
    try:
        text = file_text(path, FILE_BYTES_MAX)
    except ValueError as error:
        raise QuotaFileError([str(error)]) from None
    return parse_quotas(text, str(path))


def parse_quotas(text: str, name: str) -> QuotaTable:
    """The quotas of a file's text; `name` is for errors. Raises QuotaFileError, with all that is wrong."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QuotaFileError([f"{name}: {error}"]) from None
    rows = table.pop("quota", [])
    if table:
        raise QuotaFileError([f"{name}: there is no {next(iter(table))!r} in a file of quotas, but [[quota]]"])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise QuotaFileError([f"{name}: begin each entry with a line [[quota]]"])
    if len(rows) > ENTRIES_MAX:
        raise QuotaFileError([f"{name}: {len(rows)} entries; at most {ENTRIES_MAX}"])
    quotas, problems = QuotaTable(), []
    for number, row in enumerate(rows, 1):
        try:
            quotas.insert(*_entry(number, row))
        except (WrongPermission, InvalidQuota) as error:
            problems.append(f"{name}, entry {number}: {error}")
    if problems:
        raise QuotaFileError(problems)
    return quotas


def _entry(number: int, row: Mapping[str, Any]) -> tuple[Any, Entry]:
    """Raises WrongPermission, InvalidQuota."""
    if "client" in row:
        raise WrongPermission(f"client: a quota is of a user or an address; name one of {', '.join(CONDITIONS)}")
    who = tuple(
        (key, cell if isinstance(cell, str) else tuple(cell) if isinstance(cell, list) else str(cell))
        for key, cell in row.items() if key in CONDITIONS
    )
    entries = {key: value for key, value in row.items() if key not in (*CONDITIONS, "name", "salience")}
    if not entries:
        raise InvalidQuota("it bounds nothing; give it a quota such as connections = 10")
    label = name_of(row["name"]) if "name" in row else f"entry {number}"
    return who_of(who), Entry(label, salience_of(row.get("salience", 0)), entries, quota_of(entries, label))
