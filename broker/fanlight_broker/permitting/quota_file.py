"""The file of quotas, TOML, read into the quotas of principals (docs/quotas.md).

    [[quota]]
    group = "sensors"              who: user, group, certificate, address, protocol, listener; none: everybody
    per = "user"                   whose clients have it together: user (the default), client, group, address
    connections = 2                how much: by the names of core/quota.py
    publish_messages = 10          a second
    over_rate = "refuse"

Of each `per`, the first entry whose conditions are met, by salience and then in the order of the file, holds for a
client. What is known of the user alone (users file, token, HTTP hook) goes before that of its user, name by name.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fanlight_broker.core.permissions import Asker
from fanlight_broker.core.quota import HOLDERS, NO_QUOTA, HeldQuota, Holder, InvalidQuota, Per, Quota, quota_of
from fanlight_broker.parsing import file_text
from fanlight_permissions.parties import EVERYBODY, Parties, groups_of, within
from fanlight_permissions.permission_file import WrongPermission, name_of, salience_of, who_of
from fanlight_permissions.permission_rule import ATTRIBUTES

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
ENTRIES_MAX: Final = 10_000
# Not by the name of a client, which may call itself anything: it would choose its quota. For `per` that is no matter.
CONDITIONS: Final = tuple(attribute for attribute in ATTRIBUTES if attribute != "client")
KEYS: Final = (*CONDITIONS, "name", "salience", "per")  # what is no quota


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
    per: Per = Per.USER
    groups: tuple[str, ...] = ()  # that it names

    def held_by(self, asker: Asker) -> HeldQuota:
        """The quota, and whose it is: of a group, the first by name of those that it names."""
        group = ""
        if self.per is Per.GROUP:
            group = min(each for each in groups_of(asker) if any(within("group", each, own) for own in self.groups))
        return HeldQuota(Holder(self.per, HOLDERS[self.per](asker, group), self.label), self.quota)


class QuotaTable:
    """Quotas that do not change. It is core.quota.Quotas."""

    empty = False

    def __init__(self) -> None:
        self._parties = Parties()
        # By the kind of holder and the party: the order of its first entry.
        self._first: dict[Per, dict[int, tuple[float, int]]] = {}
        self._entries: dict[tuple[float, int], Entry] = {}
        self._held: dict[tuple[str, str], Quota] = {}  # but for users, by whose they are and their names

    def __len__(self) -> int:
        return len(self._entries)

    def insert(self, who: Any, entry: Entry) -> None:
        """Raises InvalidQuota."""
        order = entry.salience, len(self._entries)
        if entry.per is not Per.USER:
            other = self._held.setdefault((entry.per.value, entry.label), entry.quota)
            if other is not entry.quota and (entry.quota.pots or other.pots):
                raise InvalidQuota(f"name: {entry.label!r} is another entry of the same per; each counts by its name")
        party = self._parties.number(who) if who else EVERYBODY
        first = self._first.setdefault(entry.per, {})
        first[party] = min(first.get(party, order), order)
        self._entries[order] = entry

    def entries_of(self, asker: Asker) -> dict[Per, Entry]:
        """The entries that hold for a client, one for each kind of holder at most.

        A namespace is one principal, so that an entry of its kind is chosen by the namespace alone, whoever asks.
        """
        parties, found = self._parties.of(asker), {}
        of_principal = self._parties.of(Asker(namespace=asker.namespace)) if asker.namespace else parties
        for per, first in self._first.items():
            orders = [first[party] for party in (of_principal if per is Per.USER else parties) if party in first]
            if orders:
                found[per] = self._entries[min(orders)]
        return found

    def held(self, holder: Sequence[str]) -> Quota | None:
        per, _, entry = holder
        return self._held.get((per, entry))

    def of(self, asker: Asker, own: Mapping[str, int]) -> Quota:
        found = self.entries_of(asker)
        entry = found.pop(Per.USER, None)
        quota = entry.quota if entry is not None else NO_QUOTA
        if own:
            quota = quota_of({**(entry.entries if entry is not None else {}), **own}, f"user {asker.user}")
        return replace(quota, also=tuple(each.held_by(asker) for each in found.values())) if found else quota


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
        raise WrongPermission(
            f'client: clients choose their own names; name one of {", ".join(CONDITIONS)}, or per = "client"'
        )
    per = _per(row.get("per", Per.USER.value))
    who = tuple(
        (key, cell if isinstance(cell, str) else tuple(cell) if isinstance(cell, list) else str(cell))
        for key, cell in row.items() if key in CONDITIONS
    )
    entries = {key: value for key, value in row.items() if key not in KEYS}
    if not entries:
        raise InvalidQuota("it bounds nothing; give it a quota such as connections = 10")
    label = name_of(row["name"]) if "name" in row else f"entry {number}"
    conditions = who_of(who)
    groups = dict(conditions).get("group", ())
    if per is Per.GROUP and not groups:
        raise InvalidQuota('per = "group": name the groups, with group = ...')
    return conditions, Entry(
        label, salience_of(row.get("salience", 0)), entries, quota_of(entries, label), per, groups
    )


def _per(cell: object) -> Per:
    """Raises InvalidQuota."""
    for per in Per:
        if cell == per.value:
            return per
    raise InvalidQuota(f"per is {cell!r}; it is one of {', '.join(Per)}")
