"""Why a rule decides, and why more salient ones do not apply: for people. The table is what decides."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import matchcore
from fanlight_broker.core.permissions import Action, Asker
from fanlight_broker.core.topics import RESERVED, SEPARATORS, first_word
from fanlight_permissions.parties import groups_of, meets
from fanlight_permissions.permission_rule import BITS, Pattern, PermissionRule, Probe, fits
from fanlight_permissions.scopes import behind, is_word
from matchcore.inclusion import covers, intersects
from matchcore.kleene import with_topic
from matchcore.reasons import why_not_true

LISTED_MAX: Final = 20


class Request(NamedTuple):
    """What somebody wants. is_filter: the topic is a filter, and all that it matches is wanted."""

    asker: Asker
    action: Action
    topic: bytes = b""
    syntax: str = ""
    is_filter: bool = False
    fields: Mapping[str, object] | None = None


class Unmet(NamedTuple):
    """A rule that does not apply, and why: what is named first is what the others would not help with."""

    rule: PermissionRule
    reasons: tuple[str, ...]


def unmet(rules: Iterable[PermissionRule], request: Request) -> list[Unmet]:
    """Rules that do not apply: the nearest LISTED_MAX, by how much stands in the way and by salience."""
    found = [Unmet(rule, reasons) for rule in rules if (reasons := tuple(why_not(rule, request)))]
    return sorted(found, key=lambda each: len(each.reasons))[:LISTED_MAX]


def why_not(rule: PermissionRule, request: Request) -> Iterator[str]:
    """Why a rule does not apply; nothing, if it does."""
    about = [pattern for bits, pattern in rule.patterns if bits & BITS[request.action]]
    for attribute, values in rule.who:
        if not meets(attribute, values, request.asker):
            yield f"{attribute} is {_own(attribute, request.asker)}, and the rule is for {' or '.join(values)}"
    if not about:
        yield f"it is not about {request.action.value}"
        return
    reasons = [_why_not_on(rule, pattern, request) for pattern in about]
    if all(reasons):
        yield "; ".join(dict.fromkeys(reason for reason in reasons if reason))
    if rule.where is not None:
        if request.fields is None:
            yield f"it depends on the content: {rule.where}"
        else:
            words = request.topic.split(SEPARATORS[request.syntax])
            yield from filter(None, [why_not_true(rule.where, with_topic(request.fields, words))])


def _own(attribute: str, asker: Asker) -> str:
    if attribute == "group":
        return ", ".join(sorted(groups_of(asker))) or "none"
    return str(getattr(asker, attribute)) or "not known"


def _why_not_on(rule: PermissionRule, pattern: Pattern, request: Request) -> str | None:
    if not request.syntax:
        return None
    if rule.allow and pattern.begins_with_wildcard and not pattern.probes and (
        first_word(request.topic, request.syntax) in RESERVED
    ):
        return f"no allowing filter that begins with a wildcard, as {pattern}, reaches $SYS, $audit, $inbox and $stream"
    words = request.topic.split(SEPARATORS[request.syntax])
    filled: dict[Probe, bytes] = {}
    for probe in pattern.probes:
        names = _names(probe, request.asker)
        fit = [name.encode() for name in names if not rule.allow or fits(name, probe, pattern.syntax)]
        if not fit:
            return f"%{probe.letter} is {' or '.join(map(repr, names))}, which is not put into a filter"
        place = probe.position - 1 if probe.position > 0 else probe.position
        word = words[place] if -len(words) <= place < len(words) else b""
        if word not in fit and not request.is_filter:
            return f"{word.decode(errors='replace')!r} stands where %{probe.letter} is, {' or '.join(map(repr, names))}"
        if all(is_word(name, pattern.syntax) for name in names):
            filled[probe] = word if word in fit else fit[0]
    # As in the table: behind another word no wildcard is the first one, which would not stand for words with $ first.
    filter = pattern.filled(filled)
    own, topic = behind(b"k", filter, pattern.syntax), behind(b"k", request.topic, request.syntax)
    if not request.is_filter:
        return matchcore.why_not(own, pattern.syntax, topic, request.syntax) and matchcore.why_not(
            pattern.filter, pattern.syntax, request.topic, request.syntax
        )
    if (covers if rule.allow else intersects)(own, topic, a_syntax=pattern.syntax, b_syntax=request.syntax):
        return None
    return f"{pattern} does not match {'all' if rule.allow else 'anything'} that is wanted"


def _names(probe: Probe, asker: Asker) -> list[str]:
    if probe.letter == "g":
        return sorted(groups_of(asker))
    return [asker.user if probe.letter == "u" else asker.client]
