"""What a dry run of permissions is to say, by the plain interpreter of rules, message by message."""

from collections.abc import Mapping

from fanlight_permissions.decisions import Action, Asker
from fanlight_permissions.permission_file import parse_permissions
from fanlight_spark.judging import RuleFile, RuleLimits
from tests.broker.permitting import reference


def rules_of(text: str) -> RuleFile:
    return RuleFile("rules.toml", text)


def published(
    text: str | None, asker: Asker, topic: str, syntax: str, retain: bool, replies: bool, fields: Mapping[str, object]
) -> tuple[bool, str, str]:
    """May a message be published by these rules (None: by no rules)? With the action and the rule that decide."""
    if text is None:
        return True, "publish", ""
    rules, defaults, _ = parse_permissions(text, "rules.toml", RuleLimits())
    allowed_by = ""
    for action in (Action.CONNECT, Action.PUBLISH, *[Action.RETAIN] * retain, *[Action.REQUEST] * replies):
        place = ("", "amqp") if action is Action.CONNECT else (topic, syntax)
        verdict = reference.decide(rules, defaults, asker, action, *place, fields)
        if not verdict.allowed:
            return False, action.value, verdict.rule
        if action is Action.PUBLISH:
            allowed_by = verdict.rule
    return True, "publish", allowed_by


def readable(text: str | None, asker: Asker, topic: str, syntax: str) -> bool:
    """May somebody who may connect have what is published on a topic?"""
    if text is None:
        return True
    rules, defaults, _ = parse_permissions(text, "rules.toml", RuleLimits())
    return reference.decide(rules, defaults, asker, Action.SUBSCRIBE, topic, syntax, {}).allowed
