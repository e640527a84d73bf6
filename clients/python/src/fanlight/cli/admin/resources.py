"""What `fanlight admin ls` can list: where each list is in the API, its columns as a table, and what it can be asked.

A column is a heading and a key of the rows; `a|b` is the first of these that has a value. The unit that a key has at
its end decides how a number is shown.
"""

import json
from dataclasses import dataclass
from typing import Any

from .. import text

NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Resource:
    """path: below /api/v1. columns: heading and key. keys: that a row can be asked to be equal to.

    plural: whether the list is in pages; rows: the key of the answer that has them.
    """

    path: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...] = ()
    help: str = ""
    paged: bool = True
    rows: str = "items"


RESOURCES: dict[str, Resource] = {
    "connections": Resource(
        "/connections",
        (("NUMBER", "connection"), ("CLIENT", "client"), ("USER", "user|unverified_user"), ("ADDRESS", "address"),
         ("PROTOCOL", "protocol"), ("CONNECTED", "connected_seconds"), ("SUBSCRIPTIONS", "subscriptions"),
         ("SENT", "messages_sent"), ("DROPPED", "messages_dropped"), ("UNSENT", "outbox_bytes"), ("SLOW", "slow")),
        ("client", "user", "address", "protocol", "namespace", "slow"), "clients that are connected",
    ),
    "listeners": Resource(
        "/listeners",
        (("LISTENER", "listener"), ("PROTOCOL", "protocol"), ("HOST", "host"), ("PORT", "port"), ("TLS", "tls"),
         ("WEBSOCKET", "websocket"), ("CONNECTIONS", "connections"), ("MOST", "connections_max"),
         ("MESSAGES IN", "messages_in"), ("MESSAGES OUT", "messages_out")),
        ("listener", "protocol"), "ports that are open, and what came there",
    ),
    "sessions": Resource(
        "/sessions",
        (("CLIENT", "client"), ("USER", "user"), ("CONNECTED", "connected"), ("SUBSCRIPTIONS", "subscriptions"),
         ("IN FLIGHT", "in_flight"), ("QUEUED", "queued"), ("BYTES", "queued_bytes"), ("DROPPED", "dropped"),
         ("EXPIRY", "expiry_seconds")),
        ("client", "user", "connected", "namespace"), "MQTT sessions, and what waits for them",
    ),
    "subscriptions": Resource(
        "/subscriptions",
        (("CLIENT", "client"), ("FILTER", "filter"), ("SYNTAX", "syntax"), ("GROUP", "group"), ("WHERE", "where"),
         ("QOS", "qos"), ("DELIVERED", "delivered"), ("DROPPED", "dropped"), ("REDUNDANT BY", "redundant_by")),
        ("client", "user", "connection", "group", "namespace", "topic", "filter", "relation", "redundant", "syntax"),
        "subscriptions; topic=T: those that it reaches; redundant=true: those that another one covers",
    ),
    "retained": Resource(
        "/retained",
        (("TOPIC", "topic"), ("SYNTAX", "syntax"), ("BYTES", "size"), ("QOS", "qos"), ("CLIENT", "client"),
         ("EXPIRES", "expires_seconds")),
        ("filter", "syntax", "namespace"), "retained messages",
    ),
    "queues": Resource(
        "/queues",
        (("NAME", "queue"), ("WAITING", "waiting"), ("DELAYED", "delayed"), ("UNACKED", "unacknowledged"),
         ("CONSUMERS", "consumer_count"), ("BYTES", "bytes"), ("OLDEST", "oldest_seconds"), ("FILTERS", "filters"),
         ("WHERE", "where")),
        ("queue", "user", "durable", "namespace"), "named queues",
    ),
    "dead-letters": Resource(
        "/dead-letters",
        (("QUEUE", "queue"), ("DEAD LETTER", "dead_letter"), ("DISCARDED", "discarded"), ("HELD IN", "held_in")),
        (), "queues with a dead-letter topic, and where the dead letters are",
    ),
    "slow-consumers": Resource(
        "/slow-consumers",
        (("NUMBER", "connection"), ("CLIENT", "client"), ("ADDRESS", "address"), ("WHY", "reason"),
         ("POLICY", "policy"), ("SLOW FOR", "slow_seconds"), ("UNSENT", "outbox_bytes"), ("DROPPED", "dropped"),
         ("HELD", "held_publishers_seconds")),
        (), "who falls behind, and what the policy did", paged=False,
    ),
    "topics": Resource(
        "/topics",
        (("TOPIC", "topic"), ("MESSAGES", "messages"), ("PER SECOND", "per_second"), ("SUBSCRIBERS", "subscribers")),
        (), "topics with the most messages", paged=False,
    ),
    "namespaces": Resource(
        "/namespaces",
        (("NAMESPACE", "namespace"), ("CONNECTIONS", "connections"), ("SESSIONS", "sessions"),
         ("SUBSCRIPTIONS", "subscriptions"), ("QUEUES", "queues"), ("RETAINED", "retained"), ("DELAYED", "delayed")),
        (), "namespaces, and what is in them", paged=False,
    ),
    "users": Resource(
        "/users",
        (("USER", "user"), ("GROUPS", "groups"), ("CONNECTIONS", "connections"), ("LIMITS", "limits"),
         ("SCRAM", "scram"), ("OWN PERMISSIONS", "own_permissions")),
        ("user",), "users of the broker's file",
    ),
    "groups": Resource("/groups", (("GROUP", "group"), ("USERS", "users")), ("group",), "groups of those users"),
    "quotas": Resource(
        "/quotas",
        (("PRINCIPAL", "principal"), ("PART", "part"), ("CONNECTIONS", "connections"), ("SESSIONS", "sessions"),
         ("MESSAGES IN", "messages_in"), ("MESSAGES OUT", "messages_out"), ("HELD", "held"), ("REFUSED", "refused")),
        ("by", "principal", "quota", "per"), "users and addresses: traffic, quotas, how often held back or refused",
        paged=False, rows="quotas",
    ),
    "shares": Resource(
        "/shares", (("PRINCIPAL", "principal"), ("CLIENTS", "clients"), ("AWAY", "away")), (),
        "what users and addresses hold of what is shared", paged=False, rows="principals",
    ),
    "delayed": Resource(
        "/delayed",
        (("ID", "id"), ("TOPIC", "topic"), ("CLIENT", "client"), ("DUE", "due_seconds"), ("BYTES", "bytes")),
        ("client", "namespace"), "delayed messages",
    ),
    "bridges": Resource(
        "/bridges",
        (("NAME", "name"), ("STATE", "state"), ("ADDRESS", "address"), ("WAITING", "waiting"),
         ("FAILURES", "failures")),
        ("name", "state"), "bridges to other brokers",
    ),
    "segments": Resource(
        "/archive/segments",
        (("SEGMENT", "segment"), ("FIRST", "first"), ("END", "end"), ("MESSAGES", "messages"), ("BYTES", "bytes"),
         ("OPEN", "open")),
        (), "files of the archive",
    ),
    "readers": Resource(
        "/archive/replays",
        (("NUMBER", "replay"), ("CLIENT", "client"), ("USER", "user"), ("QUEUE", "queue"), ("FILTER", "filter"),
         ("OFFSET", "offset"), ("BEHIND", "behind"), ("MESSAGES", "messages")),
        ("client", "user", "queue", "namespace"), "who reads the archive, and how far",
    ),
    "permissions": Resource(
        "/permissions",
        (("LINE", "line"), ("EFFECT", "effect"), ("RULE", "rule"), ("DECISIONS", "decisions"), ("REFUSED", "refused"),
         ("TEXT", "text")),
        ("effect", "rule", "used"), "rules of permissions, and how often each decided", paged=False, rows="rules",
    ),
    "rules": Resource(
        "/rules",
        (("RULE", "rule"), ("PLACE", "place"), ("FILTER", "filter"), ("WHERE", "where"), ("DOES", "does"),
         ("MESSAGES", "messages")),
        (),
        "routing rules, and on how many messages each acted", paged=False,
    ),
    "settings": Resource(
        "/settings", (("NAME", "name"), ("VALUE", "value"), ("FROM", "place"), ("WAITS FOR RESTART", "waiting")), (),
        "settings: value, where it came from", paged=False, rows="settings",
    ),
}  # fmt: skip


def value_of(row: dict[str, Any], key: str) -> Any:
    """Of the first of the keys that has one."""
    return next((found for each in key.split("|") if (found := row.get(each)) not in (None, "")), None)


def cell(row: dict[str, Any], key: str) -> str:
    """A value of a row as a table shows it."""
    value = value_of(row, key)
    if value is None or value in ([], {}):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        whole = int(value) if value == int(value) else round(value, 3)
        return duration(value) if key.endswith("_seconds") else f"{whole:,}"
    if isinstance(value, list):
        return ", ".join(_name(each) for each in value)
    return _name(value)


def _name(value: Any) -> str:
    """A text; of an object its first text, which is its name."""
    if isinstance(value, dict):
        value = next((each for each in value.values() if isinstance(each, str)), json.dumps(value))
    return text.shown(str(value))


def duration(seconds: float) -> str:
    """As 45 s, 12 min, 3.5 h or 2 d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def is_number(row: dict[str, Any], key: str) -> bool:
    value = value_of(row, key)
    return isinstance(value, int | float) and not isinstance(value, bool)


def table(rows: list[dict[str, Any]], columns: tuple[tuple[str, str], ...], width: int) -> list[str]:
    """Lines, as wide as `width` characters at most: the last columns that have no room, or no values, are left out."""
    used = [each for each in columns if not rows or any(value_of(row, each[1]) is not None for row in rows)]
    cells = [[heading for heading, _ in used], *([cell(row, key) for _, key in used] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(used))]
    while len(widths) > 2 and sum(widths) + 2 * (len(widths) - 1) > width:
        widths.pop()
    right = [any(is_number(row, key) for row in rows) for _, key in used]
    aligned = [f"{'>' if number else '<'}{room}" for number, room in zip(right, widths, strict=False)]
    return ["  ".join(f"{each:{how}}" for each, how in zip(line, aligned, strict=False)).rstrip() for line in cells]
