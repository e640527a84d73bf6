r"""RabbitMQ's permissions for queues and exchanges, by regular expressions on names, as filters of rules.

A queue is `$queue.NAME` to permissions, a message to an exchange `$exchange.NAME.KEY` (docs/decisions/0025-amqp.md).
What an expression means for names that come later is converted if filters can say exactly that:

    .*   all of them          ^orders$   ^(a|b)$   ^a$|^b$   these
    ^$   none of them         ^plant\..*            queues of which `plant` is the first word
    ^amq\.gen-.*              queues whose names the broker has chosen

Of any other expression the names that match among those in the file are allowed, and it is reported: no filter stands
for a part of a word, such as `^orders-.*`. So nothing is allowed that RabbitMQ does not allow.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from fanlight_permissions.permission_rule import spelled

QUEUES: Final = "$queue."
EXCHANGES: Final = "$exchange."
TOPICS: Final = "amq.topic"
PREDECLARED: Final = ("amq.default", "amq.direct", "amq.fanout", "amq.headers", "amq.match", TOPICS)
ALL: Final = frozenset({".*", "^.*", ".*$", "^.*$"})
NOTHING: Final = frozenset({"", "^$"})
GENERATED: Final = frozenset({
    r"^amq\.gen.*", r"^amq\.gen-.*", r"^amq\.gen.*$", r"^amq\.gen-.*$", r"^amq\.gen", r"^amq\.gen-",
})  # fmt: skip
LITERAL: Final = re.compile(r"\^((?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])*)\$")
UNDER: Final = re.compile(r"\^((?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])*)\\\.(?:\.\*\$?)?")
GROUP: Final = re.compile(r"(?<!\\)\((?!\?)((?:[^()\[\]\\]|\\[^()|\[\]\\])*)\)(?![*+?{])")
ALTERNATIVES_MAX: Final = 100
PART: Final = "it is about a part of a word; of it the names in the file are allowed, and none that come later"


@dataclass(slots=True)
class Allowed:
    """Of one kind: names and words that queues begin with, or all. reasons: what more was asked for."""

    everything: bool = False
    generated: bool = False
    names: dict[str, None] = field(default_factory=dict)
    under: dict[str, None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list, compare=False)

    def concerns(self, known: Iterable[str]) -> bool:
        """Is it about more than names of another kind?"""
        return self.everything or self.generated or bool(self.under) or not self.names.keys().isdisjoint(known)


def allowed_by(regex: str, known: Iterable[str], *, words: bool) -> Allowed:
    r"""known: the names in the file. words: dots in names part words, as in those of queues. Raises re.error."""
    found = Allowed()
    if regex in NOTHING:
        return found
    pattern = re.compile(regex)
    for each in _alternatives(regex):
        literal, under = LITERAL.fullmatch(each), UNDER.fullmatch(each)
        if each in ALL or each == "":  # beside another one: it is found everywhere
            found.everything = True
        elif literal is not None:
            found.names |= {_plain(literal[1]): None} if literal[1] else {}
        elif each in GENERATED:
            found.generated = True
        elif under is not None and words and "" not in _plain(under[1]).split("."):
            found.under[_plain(under[1])] = None
        else:
            found.reasons.append(PART)
    if found.reasons:
        found.reasons = [f"{regex!r}: {PART}"]
        found.names |= dict.fromkeys(name for name in known if pattern.search(name) is not None)
    return found


def both(one: Allowed, other: Allowed) -> Allowed:
    """What both allow; less where only names in the file would say what that is."""
    if one.everything or other.everything:
        return other if one.everything else one
    made = Allowed(generated=one.generated and other.generated)
    for left, right in ((one, other), (other, one)):
        made.names |= dict.fromkeys(name for name in left.names if _has(right, name))
        made.under |= dict.fromkeys(words for words in left.under if words in right.under or _is_under(words, right))
    return made


def _has(allowed: Allowed, name: str) -> bool:
    return allowed.everything or name in allowed.names or _is_under(name, allowed)


def _is_under(name: str, allowed: Allowed) -> bool:
    return any(name.startswith(f"{words}.") for words in allowed.under)


def queue_filters(allowed: Allowed, report: Callable[[str], None]) -> list[str]:
    """As a file of permissions has them. report: is called for a name that cannot be written."""
    if allowed.everything:
        return [f"{QUEUES}#"]
    made = [f"{QUEUES}amq.*"] if allowed.generated else []  # nobody can choose a name that begins with amq.
    for text, behind in [*((name, "") for name in allowed.names), *((words, ".*.#") for words in allowed.under)]:
        if any(word in ("*", "#") or "%" in word for word in text.split(".")):
            report(f"queue {text!r}: such a name cannot be written in a rule")
        else:
            made.append(spelled(f"{QUEUES}{text}{behind}".encode(), "amqp"))
    return made


def exchange_filters(allowed: Allowed, report: Callable[[str], None]) -> list[str]:
    """The same of exchanges. `amq.topic` is the topics, and not among them."""
    if allowed.everything:
        return [f"{EXCHANGES}#"]
    made = []
    for name in allowed.names:
        if name in ("*", "#"):
            report(f"exchange {name!r}: such a name cannot be written in a rule")
        elif name != TOPICS:
            escaped = name.replace("%", "%25").replace(".", "%2E")
            made.append(spelled(f"{EXCHANGES}{escaped}.#".encode(), "amqp"))
    return made


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _alternatives(regex: str) -> list[str]:
    """Expressions of which one is found where it is: with groups `(a|b)` written out, and parted at each `|`."""
    if regex in ALL:
        return [regex]
    texts = [regex]
    while any(GROUP.search(text) for text in texts) and len(texts) <= ALTERNATIVES_MAX:
        texts = [
            text[: group.start()] + each + text[group.end() :]
            for text in texts for group in [GROUP.search(text)] if group is not None for each in group[1].split("|")
        ] + [text for text in texts if GROUP.search(text) is None]
    if len(texts) > ALTERNATIVES_MAX:
        return [f"({regex})"]  # it is not understood
    return [each for text in texts for each in _parted(text)]


def _parted(text: str) -> list[str]:
    if re.search(r"[(\[]", re.sub(r"\\.", "", text)):
        return [text]  # a | may be in brackets
    return re.split(r"(?<!\\)\|", text) if "\\\\" not in text else [text]
