"""Rules that a client brings along: in its token, in the answer of the HTTP hook, or in the users file.

    [{"effect": "deny", "publish": "site/7/config"},
     {"publish": "site/7/#", "subscribe": ["site/7/cmd/+"]}]

They are written as in a file of permissions, without conditions on the client, names, salience and `where`: they are
this client's alone, and stand in their order. `own_rules` makes one text of them, the same for equal rules. That text
is what an identity, a session and the store keep; `read_own` makes rules of it. What they decide: personal.py.
"""

import json
from collections.abc import Mapping
from itertools import chain, starmap
from typing import Any, Final, NamedTuple

import matchcore
from fanlight_permissions.decisions import Action
from fanlight_permissions.permission_rule import (
    ACTION_BITS,
    BITS,
    KEYS_OF_ACTIONS,
    Pattern,
    WrongPattern,
    pattern_of,
)
from fanlight_permissions.reading import did_you_mean

OWN_RULES_MAX: Final = 64  # of one client
OWN_FILTERS_MAX: Final = 256  # of all of them: each is compared with each subscription
OWN_BYTES_MAX: Final = 8_192  # of their text, which each session keeps
OWN_FILTER_BYTES_MAX: Final = 1_024
EFFECTS: Final = {"allow": True, "deny": False}
ADMIN: Final = {"read": Action.ADMIN_READ, "write": Action.ADMIN_WRITE}
NO_TOPIC: Final = Pattern(b"", b"", "amqp")


class WrongOwnRules(ValueError):
    """What is wrong with the rules that a client brings along."""


class OwnRule(NamedTuple):
    allow: bool
    patterns: tuple[tuple[int, Pattern], ...]  # bits of actions, and where


def own_rules(value: object) -> str:
    """The one text of rules, as JSON or TOML has them; "" without any. Raises WrongOwnRules."""
    if not isinstance(value, list | tuple) or len(value) > OWN_RULES_MAX:
        raise WrongOwnRules(f"permissions must be a list of at most {OWN_RULES_MAX} rules")
    rows = [_row(number, row) for number, row in enumerate(value, 1)]
    filters = sum(len(cell) for row in rows for cell in row.values() if isinstance(cell, list))
    if filters > OWN_FILTERS_MAX:
        raise WrongOwnRules(f"permissions have {filters} filters; at most {OWN_FILTERS_MAX}")
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if rows else ""
    if (size := len(text.encode())) > OWN_BYTES_MAX:
        raise WrongOwnRules(f"permissions take {size} bytes as JSON; at most {OWN_BYTES_MAX}")
    return text


def read_own(text: str) -> list[OwnRule]:
    """Rules of a text of `own_rules`. Raises WrongOwnRules: of another version, it may have what is not known here."""
    try:
        rows = json.loads(text)
        return [OwnRule(EFFECTS[row.pop("effect")], tuple(chain.from_iterable(starmap(_patterns, row.items()))))
                for row in rows]
    except WrongOwnRules:
        raise
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        raise WrongOwnRules("permissions cannot be read") from None


def _row(number: int, row: object) -> dict[str, Any]:
    """A rule in its one form."""
    if not isinstance(row, Mapping):
        raise WrongOwnRules(f'permission {number}: is no rule such as {{"effect": "allow", "publish": "a/#"}}')
    effect = row.get("effect", "allow")
    if effect not in ("allow", "deny"):
        raise WrongOwnRules(f"permission {number}: effect is allow or deny")
    found: dict[str, Any] = {"effect": effect}
    for key, cell in row.items():
        if key == "effect":
            continue
        if key not in KEYS_OF_ACTIONS:
            name = str(key)[:60]
            advice = did_you_mean(name, ("effect", *KEYS_OF_ACTIONS))
            raise WrongOwnRules(f"permission {number}: there is no {name!r}{advice}")
        if key == "connect":
            if not isinstance(cell, bool):
                raise WrongOwnRules(f"permission {number}: connect is true or false")
            if cell:
                found[key] = True
            continue
        texts = [cell] if isinstance(cell, str) else cell
        if not isinstance(texts, list | tuple) or not texts or not all(isinstance(each, str) for each in texts):
            raise WrongOwnRules(f"permission {number}: {key} is a text, or a list of texts")
        found[key] = sorted({each.strip() for each in texts})
        try:
            _patterns(key, found[key])
        except WrongOwnRules as error:
            raise WrongOwnRules(f"permission {number}: {key}: {error}") from None
    if len(found) == 1:
        does = "allows" if effect == "allow" else "denies"
        raise WrongOwnRules(f"permission {number}: it {does} nothing; give it one of {', '.join(KEYS_OF_ACTIONS)}")
    return found


def _patterns(key: str, cell: Any) -> list[tuple[int, Pattern]]:
    if key == "connect":
        return [(ACTION_BITS[key], NO_TOPIC)]
    if key == "admin":
        if unknown := set(cell) - ADMIN.keys():
            raise WrongOwnRules(f"{min(unknown)[:60]!r} is not read or write")
        return [(BITS[ADMIN[each]], NO_TOPIC) for each in cell]
    return [(ACTION_BITS[key], _pattern(each)) for each in cell]


def _pattern(text: str) -> Pattern:
    try:
        octets = text.encode()
    except UnicodeEncodeError:
        raise WrongOwnRules("a filter is no valid text") from None
    if not 0 < len(octets) <= OWN_FILTER_BYTES_MAX:
        raise WrongOwnRules(f"a filter of {len(octets)} bytes; 1 to {OWN_FILTER_BYTES_MAX}")
    try:
        pattern = pattern_of(text)
        matchcore.parse_filter(pattern.filter, pattern.syntax)
    except (WrongPattern, matchcore.InvalidFilter) as error:
        raise WrongOwnRules(f"{text[:60]!r}: {error}") from None
    return pattern
