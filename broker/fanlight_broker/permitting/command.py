"""`fanlightd permissions check` and `test`: a file of permissions, without a broker."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any, Final

import matchcore
from fanlight_broker.config import Exit
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import ON_TOPICS, Access, Action, Asker, NoNamespace
from fanlight_broker.parsing import did_you_mean, file_text, message_fields
from fanlight_broker.permitting.explaining import Request, unmet
from fanlight_broker.permitting.permission_faults import Conflict, ShadowedRule, conflicts, shadowed, warnings
from fanlight_permissions.class_grant import DEFAULT
from fanlight_permissions.own_rules import own_rules
from fanlight_permissions.permission_file import PermissionFileError, compile_permissions, read
from fanlight_permissions.permission_rule import PermissionRule, spelling_of
from fanlight_permissions.reading import never
from fanlight_permissions.table import PermissionTable, in_order

OWN_FILE_BYTES_MAX: Final = 64 * 1024
LISTED_MAX: Final = 100  # of each kind of fault
PAUSE_EVERY: Final = 64  # rules that are explained, some 1 ms
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
        if arguments.namespace is None:
            request = request._replace(asker=replace(request.asker, namespace=table.namespace_of(request.asker)))
        view = decision(file.rules, table, request)
        if request.asker.namespace:
            view["namespace"] = request.asker.namespace
            if request.action in (Action.ADMIN_READ, Action.ADMIN_WRITE):
                raise NotPermitted("views and actions are for clients of the root alone")
    except PermissionFileError as error:
        for problem in error.problems:
            print(f"fanlightd: {problem}", file=sys.stderr)
        return Exit.USAGE
    except (WrongRequest, matchcore.TopicError) as error:
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.USAGE
    except (NoNamespace, NotPermitted) as error:
        why = error.text if isinstance(error, NotPermitted) else f"no permission: {error}"
        view = {"decision": "denied", "rule": "", "by_content": False, "not": [], "why": why}
    if arguments.json:
        print(json.dumps(view))
    else:
        print("\n".join(_decision_lines(view)))
    return Exit.OK if view["decision"] == "allowed" else Exit.FAILED


def _request(arguments: argparse.Namespace) -> Request:
    """Raises WrongRequest."""
    asker = Asker(
        arguments.user, frozenset(arguments.group), arguments.client, arguments.certificate, arguments.address,
        arguments.protocol, arguments.listener, _own(arguments.own), arguments.namespace or "",
    )
    return request_of(asker, arguments.action, arguments.topic, arguments.fields)


def request_of(asker: Asker, named: str, topic: str | None, fields: str | None, flag: str = "--") -> Request:
    """named: the action. fields: JSON. flag: what stands before a name in errors. Raises WrongRequest."""
    known = [action.value for action in Action]
    if named not in known:
        raise WrongRequest(f"{flag}action is one of {', '.join(known)}, not {named!r}{did_you_mean(named, known)}")
    action = Action(named)
    if (action in ON_TOPICS) is not (topic is not None):
        needs = "needs" if action in ON_TOPICS else "has no"
        raise WrongRequest(f"{flag}action {action.value} {needs} {flag}topic")
    if asker.address:
        try:
            ip_address(asker.address.partition("%")[0])
        except ValueError as error:
            raise WrongRequest(f"{flag}address: {error}") from None
    if topic is None:
        return Request(asker, action)
    octets, syntax = spelling_of(topic)
    return Request(asker, action, octets, syntax, action in OF_FILTERS, _fields(fields))


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
    view = decided(table, request)
    return view | undecided(rules, view["rule"], request)


def decided(table: PermissionTable, request: Request) -> dict[str, Any]:
    """What the table decides. Raises TopicError."""
    grant = table.grant_of(request.asker)
    denied_by, by_content = "", False
    try:
        if request.is_filter:
            found = grant.decide_filter(request.action, request.topic, request.syntax)
            said = {Access.ALL: "allowed", Access.PARTLY: "partly allowed", Access.NONE: "denied"}[found.access]
            rule, denied_by = found.rule, found.denied_by
        else:
            verdict = grant.decide(request.action, request.topic, request.syntax, request.fields)
            said, rule, by_content = "allowed" if verdict.allowed else "denied", verdict.rule, verdict.by_content
            if by_content and request.fields is None:
                said = "depends on the content"
    finally:
        table.release(grant)
    view: dict[str, Any] = {"decision": said, "rule": rule, "by_content": by_content}
    return view | {"denied_by": denied_by} if denied_by else view


def undecided(
    rules: Sequence[PermissionRule], label: str, request: Request, pause: Callable[[], None] = never
) -> dict[str, Any]:
    """Where the rule is that decides, and why more salient ones do not apply. label: of the rule; "": none decides."""
    ordered = in_order(list(rules))
    place = next((place for place, each in enumerate(ordered) if each.label == label), len(ordered))
    view: dict[str, Any] = {"place": ordered[place].place} if place < len(ordered) else {}
    found = sorted(unmet(_paused(ordered[:place], pause), request), key=lambda each: each.rule.order)
    view["not"] = [{"rule": each.rule.label, "effect": each.rule.effect, "why": list(each.reasons)} for each in found]
    return view


def _paused(rules: Sequence[PermissionRule], pause: Callable[[], None]) -> Iterator[PermissionRule]:
    for number, rule in enumerate(rules, 1):
        if number % PAUSE_EVERY == 0:
            pause()
        yield rule


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
    if "why" in view:
        by = view["why"]
    lines = [f"{view['decision']}: {by}"]
    if "namespace" in view:
        lines.append(f"  in the namespace {view['namespace']}")
    if "denied_by" in view:
        lines.append(f"  some of it is denied by {view['denied_by']}; see subscribe_partly")
    if view["not"]:
        lines.append("these do not apply:" if not rule else "more salient, and do not apply:")
    lines += [f"  {each['rule']} ({each['effect']}): {', and '.join(each['why'])}" for each in view["not"]]
    return lines
