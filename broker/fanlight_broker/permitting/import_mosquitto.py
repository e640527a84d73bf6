"""Mosquitto's acl_file as permissions (mosquitto.conf(5), "acl_file").

    topic [read|write|readwrite|deny] FILTER     of anonymous clients, or of the `user` above it
    user NAME
    pattern [...] FILTER                         of everybody, with %u and %c

Mosquitto asks the lists of the user first and the patterns then; in each of the two, what denies comes before what
allows. So it is here.
"""

from collections.abc import Iterable
from typing import Final

import matchcore
from fanlight_broker.permitting.importing import Imported, actions_of, filter_text
from fanlight_permissions.permission_rule import ANONYMOUS_GROUP, WrongPattern, pattern_of

ACCESSES: Final = {"read": "r", "write": "w", "readwrite": "rw", "deny": ""}
NOTES: Final = (
    "Where there are patterns, mosquitto denies all of them to a client with + or # in its name. Here that is so of "
    "those with %u and %c.",
    "Mosquitto lets a client subscribe to any filter, and delivers what it may read. Here a filter must be allowed as "
    "a whole; see subscribe_partly.",
)

Key = tuple[str, bool]  # a user, "" for anonymous clients; or ("", True) for the patterns


class Acl:
    """The lines of one list: of a user, of anonymous clients, or of everybody."""

    def __init__(self) -> None:
        self.denied: list[str] = []
        self.read: list[str] = []
        self.written: list[str] = []

    def add(self, access: str, filter: str) -> None:
        if not access:
            self.denied.append(filter)
        if "r" in access:
            self.read.append(filter)
        if "w" in access:
            self.written.append(filter)


def import_acl(lines: Iterable[str], source: str) -> Imported:
    made = Imported(source, notes=list(NOTES))
    lists: dict[Key, Acl] = {}
    user = ""
    for number, raw in enumerate(lines, 1):
        line = raw.strip("\r\n \t")
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        rest = rest.strip(" \t")
        if word == "user" and rest:
            user = rest
        elif word in ("topic", "pattern") and rest:
            is_pattern = word == "pattern"
            access, filter, why = _parsed(rest, is_pattern)
            if why or not _is_name(user):
                made.left_out.append(f"{source}, line {number}: {line}: {why or 'the user ends in * or has a %'}")
                _close(made, lists, "" if is_pattern else user, is_pattern, access)
            else:
                lists.setdefault(("" if is_pattern else user, is_pattern), Acl()).add(access, filter)
        else:
            made.left_out.append(f"{source}, line {number}: {line}: it is not user, topic or pattern")
    for (name, is_pattern), acl in sorted(lists.items(), key=lambda each: each[0][1]):
        _write(made, name, is_pattern, acl)
    return made


def _parsed(rest: str, is_pattern: bool) -> tuple[str, str, str]:
    """Access, filter as it is written here, and why it cannot be converted, if that is so."""
    word, _, behind = rest.partition(" ")
    access, filter = (ACCESSES.get(word, ""), behind.strip(" \t")) if behind else ("rw", rest)
    if behind and word not in ACCESSES:
        return access, filter, f"{word} is not {', '.join(ACCESSES)}"
    if not is_pattern and any(name in filter for name in ("%u", "%c", "%g")):
        return access, filter, "here %u and %c would be names, as in a pattern"
    if "%g" in filter:
        return access, filter, "here %g is a group"
    text = filter_text(filter, "mqtt")
    try:
        pattern = pattern_of(text)
        matchcore.parse_filter(pattern.filter, pattern.syntax)
    except (WrongPattern, matchcore.InvalidFilter) as error:
        return access, filter, str(error)
    return access, text, ""


def _is_name(user: str) -> bool:
    return not user.endswith("*") and "*" not in user and not any(name in user for name in ("%u", "%c", "%g"))


def _close(made: Imported, lists: dict[Key, Acl], user: str, is_pattern: bool, access: str) -> None:
    """A line that denies and is left out would leave more allowed: then nothing of its list is."""
    if access == "" and _is_name(user):
        lists.setdefault((user, is_pattern), Acl()).denied.append("#")
        made.left_out.append("  ... which denies something: so all is denied where it would be asked")


def _write(made: Imported, user: str, is_pattern: bool, acl: Acl) -> None:
    who = {} if is_pattern else {"user": user} if user else {"group": ANONYMOUS_GROUP}
    whose = "patterns, of everybody" if is_pattern else f"of {user or 'anonymous clients'}"
    if acl.denied:
        filters = list(dict.fromkeys(acl.denied))
        made.add("deny", whose, {**who, **actions_of(filters, filters)})
    if acl.read or acl.written:
        made.add("allow", whose, {**who, **actions_of(list(dict.fromkeys(acl.read)), list(dict.fromkeys(acl.written)))})
