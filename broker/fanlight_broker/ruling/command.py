"""`fanlightd rules check`: a file of rules, without a broker: what is wrong with it, and what it does to a message."""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from fanlight_broker.config import Exit
from fanlight_broker.core.errors import InvalidTopic
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.rule_actions import RoutingRule
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.core.topics import named_filter
from fanlight_broker.parsing import message_fields
from fanlight_broker.ruling.rule_faults import Pair, Shadow, overlaps, shadowed
from fanlight_broker.ruling.rule_file import RuleFileError, load
from matchcore.kleene import key_of
from matchcore.selector import Attribute

LISTED_MAX: Final = 100  # of each kind of fault


def check_rules(path: Path, limits: Limits, *, topic: str | None, fields: str | None, as_json: bool) -> int:
    try:
        message = message_fields(fields) if fields is not None else {}
        rules = load(path, limits, archive=True)
        effect = _effect(rules, limits, topic, message) if topic is not None else None
    except RuleFileError as error:
        if as_json:
            print(json.dumps({"file": str(path), "problems": error.problems}))
        for problem in error.problems:
            print(f"fanlightd: {problem}", file=sys.stderr)
        return Exit.FAILED
    except (InvalidTopic, ValueError) as error:
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.USAGE
    if fields is not None and topic is None:
        print("fanlightd: --fields is of no use without --topic", file=sys.stderr)
        return Exit.USAGE
    hidden = list(islice(shadowed(rules), LISTED_MAX))
    pairs = overlaps(rules, LISTED_MAX)
    if as_json:
        print(json.dumps(_view(path, rules, hidden, pairs, effect)))
    else:
        print("\n".join(_lines(path, rules, hidden, pairs, effect)))
    return Exit.OK


def _effect(rules: Sequence[RoutingRule], limits: Limits, topic: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of a message. Raises InvalidTopic."""
    octets, syntax = named_filter(topic)
    return dict(RuleSet(rules, limits).explain(octets, syntax, fields))


def _view(
    path: Path, rules: Sequence[RoutingRule], hidden: Sequence[Shadow], pairs: Sequence[Pair],
    effect: Mapping[str, Any] | None,
) -> dict[str, Any]:
    view: dict[str, Any] = {
        "file": str(path), "rules": len(rules), "problems": [],
        "shadowed": [
            {"rule": each.rule.label, "by": each.by.label if each.by is not None else None} for each in hidden
        ],
        "overlaps": [
            {"first": each.first.label, "second": each.second.label, "fields": _named(each.fields)} for each in pairs
        ],
    }
    if effect is not None:
        view["message"] = effect
    return view


def _lines(
    path: Path, rules: Sequence[RoutingRule], hidden: Sequence[Shadow], pairs: Sequence[Pair],
    effect: Mapping[str, Any] | None,
) -> list[str]:
    lines = [f"{path}: {len(rules)} rules, sound"]
    for shadow in hidden:
        why = "its selector is never true" if shadow.by is None else f"{shadow.by} takes away all of its messages"
        lines.append(f"  never acts: {shadow.rule}: {why}")
    for pair in pairs:
        example = f", such as {json.dumps(_named(pair.fields))}" if pair.fields else ""
        lines.append(f"  both may act on one message: {pair.first}, then {pair.second}{example}")
    if len(hidden) == LISTED_MAX or len(pairs) == LISTED_MAX:
        lines.append(f"  (at most {LISTED_MAX} of each kind are listed)")
    if effect is not None:
        lines += ["", *_effect_lines(effect)]
    return lines


def _effect_lines(effect: Mapping[str, Any]) -> list[str]:
    lines = [f"{step['rule']} ({step['place']}), on {step['topic']}: {step['does']}" for step in effect["rules"]]
    if not lines:
        lines = ["no rule acts on it"]
    for each in effect["routed"]:
        headers = f", headers {json.dumps(each['headers'])}" if each["headers"] else ""
        archived = ", archived" if each["archived"] else ""
        delay = f", after {each['delay_seconds']:g} s" if each["delay_seconds"] is not None else ""
        lines.append(f"routed to {each['topic']}{headers}{archived}{delay}")
    if not effect["routed"]:
        lines.append("routed to nobody: it is dropped")
    return lines


def _named(fields: Mapping[Any, object] | None) -> dict[str, Any]:
    """Fields by their names, as JSON."""
    return {
        str(key_of(key) if isinstance(key, Attribute) else key): value if not isinstance(value, bytes) else "(bytes)"
        for key, value in (fields or {}).items()
    }
