"""What permissions mean: the list of rules read from the top, in plain Python. The oracle of the property tests."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_network

from fanlight_broker.core.permissions import Action, Asker, Verdict
from fanlight_permissions.permission_rule import BITS, PermissionRule
from matchcore.kleene import holds, topic_fields

SEPARATORS = {"mqtt": "/", "amqp": "."}
ONE = {"mqtt": "+", "amqp": "*"}
RESERVED = (["$SYS"], ["$audit"], ["$inbox"], ["$stream"])


def words_of(text: str, syntax: str) -> list[str]:
    return text.split(SEPARATORS[syntax]) if text else []


def matches(filter: Sequence[str | tuple[str, ...]], words: Sequence[str], one: str) -> bool:
    """filter: words, wildcards, and tuples of names of which one must stand there."""
    if not filter:
        return not words
    first, rest = filter[0], filter[1:]
    if first == "#":
        return any(matches(rest, words[skipped:], one) for skipped in range(len(words) + 1))
    if not words:
        return False
    fits = words[0] in first if isinstance(first, tuple) else first in (one, words[0])
    return fits and matches(rest, words[1:], one)


def applies_to(rule: PermissionRule, asker: Asker) -> bool:
    for attribute, values in rule.who:
        if attribute == "group":
            own = set(asker.groups) | ({"anonymous"} if not asker.user else set())
        else:
            own = {getattr(asker, attribute)} - {""}
        if attribute == "address":
            met = any(ip_address(address) in ip_network(value) for address in own for value in values)
        elif attribute in ("protocol", "listener", "namespace"):
            met = bool(own & set(values))
        else:
            met = any(fnmatchcase(each, value.replace("[", "[[]")) for each in own for value in values)
        if not met:
            return False
    return True


def filter_of(rule: PermissionRule, text: str, syntax: str, asker: Asker) -> list[str | tuple[str, ...]]:
    found: list[str | tuple[str, ...]] = []
    for place, word in enumerate(words_of(text, syntax)):
        if word not in ("%u", "%c", "%g"):
            found.append(word)
            continue
        names = {"%u": [asker.user], "%c": [asker.client], "%g": sorted(asker.groups or ())}[word]
        if word == "%g" and not asker.user:
            names.append("anonymous")
        if rule.allow:
            names = [
                name for name in names
                if name and not set("+#*\0") & set(name) and SEPARATORS[syntax] not in name
                and not (place == 0 and name.startswith("$"))
            ]
        found.append(tuple(names))
    return found


def concerns(rule: PermissionRule, action: Action, topic: str, syntax: str, asker: Asker) -> bool:
    for bits, pattern in rule.patterns:
        if not bits & BITS[action]:
            continue
        filter = filter_of(rule, pattern.text.decode(), pattern.syntax, asker)
        words = words_of(topic, syntax)
        wild = filter[:1] in (["#"], [ONE[pattern.syntax]])
        if rule.allow and wild and words[:1] in RESERVED:
            continue
        if matches(filter, words, ONE[pattern.syntax]):
            return True
    return False


def decide(
    rules: Sequence[PermissionRule], defaults: Mapping[Action, bool], asker: Asker, action: Action, topic: str,
    syntax: str, fields: Mapping[str, object] | None,
) -> Verdict:
    by_content = False
    for rule in sorted(rules, key=lambda each: (each.salience, each.number)):
        if not applies_to(rule, asker) or not concerns(rule, action, topic, syntax, asker):
            continue
        if rule.where is not None:
            by_content = True
            if fields is None:
                return Verdict(False, rule.label, True)
            words = [word.encode() for word in words_of(topic, syntax)]
            if holds(rule.where, {**fields, **topic_fields(words)}) is not True:
                continue
        return Verdict(rule.allow, rule.label, by_content)
    on_topic = action not in (Action.CONNECT, Action.ADMIN_READ, Action.ADMIN_WRITE)
    allowed = defaults[action] and not (on_topic and words_of(topic, syntax)[:1] in RESERVED)
    return Verdict(allowed, "default" if allowed else "", by_content)


def sees(filter: str, filter_syntax: str, topic: str, syntax: str) -> bool:
    """Does a subscription with the filter get messages on the topic? (docs/topics.md)"""
    words, asked = words_of(topic, syntax), words_of(filter, filter_syntax)
    if words[:1] in RESERVED and asked[:1] != words[:1]:
        return False
    if filter_syntax == "mqtt" and topic.startswith("$") and asked[0] in ("#", "+"):
        return False
    return matches(asked, words, ONE[filter_syntax])
