"""Who published, and who subscribes, as far as rules of permissions may ask: an archive has no user, only a client.

    --clients FILE   JSON lines: {"client": "pump-7", "user": "pump7", "groups": ["devices"], "address": "10.1.2.3"}
    --users FILE     the broker's users file: the groups of each user, and the rules of its own
    a snapshot       the user of each client that subscribes
    --as USER        the user of all other clients; %c: each is called as its client is

Rules that a client brought in a token, or got from a service (auth_url), are in none of these but --clients, where they
stand as in a users file: `"permissions": [{"publish": "site/#"}]`.

In this order. A client of which none of them says anything is taken for an anonymous one, and counted as unknown. It
needs no Spark.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fanlight_permissions.decisions import Asker
from fanlight_permissions.own_rules import WrongOwnRules, own_rules
from fanlight_spark.snapshot import Snapshot, Subscription

OWN_NAME: Final = "%c"  # in place of a user: the client's name
TEXTS: Final = ("client", "user", "certificate", "address", "listener")
MQTT: Final = "mqtt"


class AskersError(ValueError):
    """A file that is to say who somebody is does not."""


@dataclass(frozen=True, slots=True)
class Askers:
    """clients: by their names. groups: by users. others: of a client that is not in them; its user may be OWN_NAME.

    own  rules of a user's own, by users
    """

    clients: Mapping[str, Asker]
    groups: Mapping[str, frozenset[str]]
    others: Asker | None = None
    own: Mapping[str, str] = field(default_factory=dict)

    def publisher(self, client: str, protocol: str) -> tuple[Asker, bool]:
        """Who published under a client's name; False: nothing says who that is."""
        known = self.clients.get(client, self.others)
        if known is None:
            return Asker(client=client, protocol=protocol), False
        user = client if known.user == OWN_NAME and client not in self.clients else known.user
        return self._as(known, user, client, protocol), True

    def subscriber(self, subscription: Subscription) -> Asker:
        """The snapshot has its user. Of its protocol only MQTT's sessions are known."""
        client = subscription.client
        known = self.clients.get(client, Asker())
        if known.user != subscription.user:
            known = Asker()
        return self._as(known, subscription.user, client, MQTT if subscription.session else "")

    def _as(self, known: Asker, user: str, client: str, protocol: str) -> Asker:
        groups = known.groups | self.groups.get(user, frozenset())
        own = known.own or self.own.get(user, "")
        return replace(known, user=user, groups=groups, client=client, protocol=protocol, own=own)


def askers_of(
    clients: Path | None = None,
    users: Path | None = None,
    snapshot: Snapshot | None = None,
    user: str | None = None,
    groups: frozenset[str] = frozenset(),
) -> Askers:
    """From the files, and what is said of all others. Raises AskersError, OSError."""
    found = {} if snapshot is None else {name: Asker(user=user) for name, user in users_of(snapshot).items()}
    if clients is not None:
        found.update(read_clients(clients))
    known = {} if users is None else read_users(users)
    return Askers(
        found, {name: groups for name, (groups, _) in known.items()},
        None if user is None else Asker(user=user, groups=groups),
        {name: own for name, (_, own) in known.items() if own},
    )  # fmt: skip


def users_of(snapshot: Snapshot) -> dict[str, str]:
    """The user of each client; not of names that clients of several users have."""
    users: dict[str, set[str]] = {}
    for each in snapshot.subscriptions:
        if each.client:
            users.setdefault(each.client, set()).add(each.user)
    return {client: min(named) for client, named in users.items() if len(named) == 1}


def read_clients(path: Path) -> dict[str, Asker]:
    """By the names of clients, a JSON object in each line. Raises AskersError, OSError."""
    found: dict[str, Asker] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise AskersError(f"{where}: no line of JSON: {error}") from error
        asker = _asker(row, where)
        if asker.client in found:
            raise AskersError(f"{where}: the client {asker.client!r} is there twice")
        found[asker.client] = asker
    return found


def _asker(row: Any, where: str) -> Asker:
    if not isinstance(row, dict) or not row.get("client"):
        raise AskersError(f'{where}: a JSON object is wanted, such as {{"client": "pump-7", "user": "pump7"}}')
    if unknown := sorted(row.keys() - {*TEXTS, "groups", "permissions"}):
        known = f"{', '.join(TEXTS)}, groups and permissions"
        raise AskersError(f"{where}: there is no {unknown[0]!r} of a client, but {known}")
    if wrong := [name for name in TEXTS if not isinstance(row.get(name, ""), str)]:
        raise AskersError(f"{where}: {wrong[0]} is a text")
    own = _own(row.get("permissions", []), where)
    return Asker(groups=_groups(row.get("groups", []), where), own=own, **{name: row.get(name, "") for name in TEXTS})


def read_users(path: Path) -> dict[str, tuple[frozenset[str], str]]:
    """The groups of each user of a users file, and the rules of its own as one text. Passwords are not looked at.

    Raises AskersError, OSError.
    """
    try:
        users = tomllib.loads(path.read_bytes().decode()).get("users", {})
    except ValueError as error:  # of TOML, and of UTF-8
        raise AskersError(f"{path}: {error}") from error
    if not isinstance(users, dict) or not all(isinstance(user, dict) for user in users.values()):
        raise AskersError(f"{path}: a users file has a section [users.NAME] for each user")
    return {
        name: (_groups(user.get("groups", []), where), _own(user.get("permissions", []), where))
        for name, user in users.items() for where in [f"{path}, user {name!r}"]
    }  # fmt: skip


def _own(given: Any, where: str) -> str:
    try:
        return own_rules(given)
    except WrongOwnRules as error:
        raise AskersError(f"{where}: {error}") from error


def _groups(given: Any, where: str) -> frozenset[str]:
    if not isinstance(given, list) or not all(isinstance(group, str) for group in given):
        raise AskersError(f"{where}: groups are a list of texts")
    return frozenset(given)
