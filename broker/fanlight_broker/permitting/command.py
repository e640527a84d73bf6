"""`fanlightd permissions check` and `test`: a file of permissions, without a broker."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any, Final

import matchcore
from fanlight_broker.config import Exit
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import ON_TOPICS, Access, Action, Asker
from fanlight_broker.parsing import did_you_mean, file_text, message_fields
from fanlight_broker.permitting.explaining import Request, Unmet, unmet
from fanlight_broker.permitting.permission_faults import Conflict, ShadowedRule, conflicts, shadowed, warnings
from fanlight_permissions.class_grant import DEFAULT
from fanlight_permissions.own_rules import own_rules
from fanlight_permissions.permission_file import PermissionFileError, compile_permissions, read
from fanlight_permissions.permission_rule import PermissionRule, spelling_of
from fanlight_permissions.table import PermissionTable

OWN_FILE_BYTES_MAX: Final = 64 * 1024
LISTED_MAX: Final = 100  # of each kind of fault
OF_FILTERS: Final = frozenset({Action.SUBSCRIBE, Action.REPLAY, Action.QUEUE})


class WrongRequest(ValueError):
    """What is asked makes no sense."""


def check_permissions(path: Path, limits: Limits, *, strict: bool, as_json: bool) -> int:
    try:
        file = read(path, limits)
        table = compile_permissions(file, str(path), limits)
    except PermissionFileError as error:
        if as_json:
            print(json.dumps({"file": str(path), "problems": error.problems}))
        for problem in error.problems:
            print(f"fanlightd: {problem}", file=sys.stderr)
        return Exit.FAILED
    hidden = list(islice(shadowed(file.rules, table), LISTED_MAX))
    pairs = conflicts(file.rules, LISTED_MAX)
    said = list(islice(warnings(file.rules), LISTED_MAX))
    if as_json:
        print(json.dumps({
            "file": str(path), "rules": len(file.rules), "problems": [], "warnings": said,
            "shadowed": [{"rule": each.rule.label, "by": [by.label for by in each.by]} for each in hidden],
            "conflicts": [
                {
                    "first": each.first.label, "second": each.second.label, "topic": each.topic,
                    "actions": [action.value for action in each.actions], "effect": each.first.effect,
                }
                for each in pairs
            ],
        }))
    else:
        print("\n".join(_check_lines(path, file.rules, hidden, pairs, said)))
    return Exit.FAILED if strict and (hidden or said) else Exit.OK


def _check_lines(
    path: Path, rules: Sequence[PermissionRule], hidden: Sequence[ShadowedRule], pairs: Sequence[Conflict],
    said: Sequence[str],
) -> list[str]:
    lines = [f"{path}: {len(rules)} rules, sound"]
    for each in hidden:
        by = ", ".join(map(str, each.by))
        why = f"{by} decide{'s' * (len(each.by) == 1)} before it" if each.by else "its selector is never true"
        lines.append(f"  never decides: {each.rule}: {why}")
    lines += [f"  warning: {each}" for each in said]
    for pair in pairs:
        acts = ", ".join(action.value for action in pair.actions)
        lines.append(
            f"  both may apply: {pair.first} {'allows' if pair.first.allow else 'denies'}, before {pair.second} "
            f"{'allows' if pair.second.allow else 'denies'}: {acts}{f' on {pair.topic}' * bool(pair.topic)}"
        )
    if LISTED_MAX in (len(hidden), len(pairs), len(said)):
        lines.append(f"  (at most {LISTED_MAX} of each kind are listed)")
    return lines


def test_permissions(arguments: argparse.Namespace, limits: Limits) -> int:
    try:
        request = _request(arguments)
        file = read(arguments.file, limits)
        table = compile_permissions(file, str(arguments.file), limits)
        view = decision(file.rules, table, request)
    except PermissionFileError as error:
        for problem in error.problems:
            print(f"fanlightd: {problem}", file=sys.stderr)
        return Exit.USAGE
    except (WrongRequest, matchcore.TopicError) as error:
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.USAGE
    if arguments.json:
        print(json.dumps(view))
    else:
        print("\n".join(_decision_lines(view)))
    return Exit.OK if view["decision"] == "allowed" else Exit.FAILED


def _request(arguments: argparse.Namespace) -> Request:
    """Raises WrongRequest."""
    known = [action.value for action in Action]
    if arguments.action not in known:
        advice = did_you_mean(arguments.action, known)
        raise WrongRequest(f"--action is one of {', '.join(known)}, not {arguments.action!r}{advice}")
    action = Action(arguments.action)
    if (action in ON_TOPICS) is not (arguments.topic is not None):
        raise WrongRequest(f"--action {action.value} {'needs' if action in ON_TOPICS else 'has no'} --topic")
    if arguments.address:
        try:
            ip_address(arguments.address.partition("%")[0])
        except ValueError as error:
            raise WrongRequest(f"--address: {error}") from None
    asker = Asker(
        arguments.user, frozenset(arguments.group), arguments.client, arguments.certificate, arguments.address,
        arguments.protocol, arguments.listener, _own(arguments.own),
    )
    if arguments.topic is None:
        return Request(asker, action)
    topic, syntax = spelling_of(arguments.topic)
    return Request(asker, action, topic, syntax, action in OF_FILTERS, _fields(arguments.fields))


def _own(path: Path | None) -> str:
    """The text of a file of rules that a client brings along."""
    if path is None:
        return ""
    try:
        return own_rules(json.loads(file_text(path, OWN_FILE_BYTES_MAX)))
    except (ValueError, RecursionError) as error:
        raise WrongRequest(f"--own: {error}") from None


def _fields(text: str | None) -> Mapping[str, object] | None:
    try:
        return None if text is None else message_fields(text)
    except ValueError as error:
        raise WrongRequest(str(error)) from None


def decision(rules: Sequence[PermissionRule], table: PermissionTable, request: Request) -> dict[str, Any]:
    """What the table decides, and why more salient rules did not. Raises TopicError."""
    ordered = sorted(rules, key=lambda rule: rule.order)
    grant = table.grant_of(request.asker)
    denied_by, by_content = "", False
    if request.is_filter:
        found = grant.decide_filter(request.action, request.topic, request.syntax)
        said = {Access.ALL: "allowed", Access.PARTLY: "partly allowed", Access.NONE: "denied"}[found.access]
        rule, denied_by = found.rule, found.denied_by
    else:
        verdict = grant.decide(request.action, request.topic, request.syntax, request.fields)
        said, rule, by_content = "allowed" if verdict.allowed else "denied", verdict.rule, verdict.by_content
        if by_content and request.fields is None:
            said = "depends on the content"
    table.release(grant)
    place = next((place for place, each in enumerate(ordered) if each.label == rule), len(ordered))
    view: dict[str, Any] = {"decision": said, "rule": rule, "by_content": by_content}
    if place < len(ordered):
        view["place"] = ordered[place].place
    if denied_by:
        view["denied_by"] = denied_by
    view["not"] = [
        {"rule": each.rule.label, "effect": each.rule.effect, "why": list(each.reasons)}
        for each in _nearest(ordered[:place], request)
    ]
    return view


def _nearest(rules: Sequence[PermissionRule], request: Request) -> list[Unmet]:
    found = unmet(rules, request)
    order = {rule.number: place for place, rule in enumerate(rules)}
    return sorted(found, key=lambda each: order[each.rule.number])


def _decision_lines(view: Mapping[str, Any]) -> list[str]:
    rule, place = view["rule"], view.get("place", "")
    if rule == DEFAULT and not place:
        by = "by default"
    elif not rule:
        by = "no rule allows it"
    elif not place:
        by = f"by {rule}"
    else:
        by = f"by rule {rule!r} ({place})" if rule != place else f"by the rule of {place}"
    if view["decision"].startswith("depends"):
        by = f"{by}, first of all; give --fields"
    lines = [f"{view['decision']}: {by}"]
    if "denied_by" in view:
        lines.append(f"  some of it is denied by {view['denied_by']}; see subscribe_partly")
    if view["not"]:
        lines.append("these do not apply:" if not rule else "more salient, and do not apply:")
    lines += [f"  {each['rule']} ({each['effect']}): {', and '.join(each['why'])}" for each in view["not"]]
    return lines
