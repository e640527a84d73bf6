"""Who is in which namespace: the [[namespace]] entries of a file of permissions (docs/namespaces.md).

    [[namespace]]
    group = "acme"                 who: user, group, certificate, address, protocol, listener; none: everybody
    name = "acme"                  one word; "%u": the user's name, "%g": its only group, "": the root

The first entry in the file whose conditions are met decides. Who meets none is in the root.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from fanlight_permissions.decisions import Asker, NoNamespace
from fanlight_permissions.parties import EVERYBODY, Parties
from fanlight_permissions.permission_rule import Who

ENTRIES_MAX: Final = 10_000
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # one word in each spelling of topics, without a wildcard
# Not `client`: that is what a client says of itself. Not `namespace`: that is what is asked for.
CONDITIONS: Final = ("user", "group", "certificate", "address", "protocol", "listener")
USER, GROUP = "%u", "%g"


def is_name(text: str) -> bool:
    """May a namespace have this name?"""
    return NAME.fullmatch(text) is not None


class NamespaceEntries:
    """Entries in the order of the file."""

    def __init__(self) -> None:
        self._parties = Parties()
        self._first: dict[int, int] = {}  # by party: the place of its first entry
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def insert(self, who: Who, name: str) -> None:
        """Raises ValueError for what is no name of a namespace."""
        if name not in ("", USER, GROUP) and not is_name(name):
            raise ValueError(
                f'name: {name!r} is no name of a namespace: 1 to 64 letters, digits, _ and -, or "%u", "%g", or ""'
            )
        party = self._parties.number(who) if who else EVERYBODY
        self._first.setdefault(party, len(self._names))
        self._names.append(name)

    def of(self, asker: Asker) -> str:
        """The namespace that somebody is in; "": the root. Raises NoNamespace for who has no valid one."""
        places = [self._first[party] for party in self._parties.of(asker) if party in self._first]
        if not places:
            return ""
        name = self._names[min(places)]
        if name not in (USER, GROUP):
            return name
        found = asker.user if name == USER else ""
        if name == GROUP and asker.user and len(asker.groups) == 1:
            found = next(iter(asker.groups))
        if not is_name(found):
            what = "user name" if name == USER else "only group"
            raise NoNamespace(f"the client has no {what} that a namespace can be called after")
        return found


def conditions_of(row: Mapping[str, Any]) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    """The conditions of an entry, for `who_of`. Raises ValueError for other keys."""
    for key in row:
        if key not in (*CONDITIONS, "name"):
            raise ValueError(f"there is no {key!r} in an entry [[namespace]]; there are name, {', '.join(CONDITIONS)}")
    return tuple(
        (key, cell if isinstance(cell, str) else tuple(cell) if isinstance(cell, list) else str(cell))
        for key, cell in row.items() if key in CONDITIONS
    )
