"""The least that rules have to allow, from what each user did: a proposal for a file of permissions.

    filters(topics, least)     the fewest filters for topics that let in no others, but where `least` or more different
                               words stood in one place between equal ones: there a wildcard is
    own_words(words, ...)      %u and %c in the place of a user's and a client's own names
    rules_file(proposals)      the text of permissions.toml; users that did the same share a rule

Retained messages and topics for replies are allowed where they were seen, and nowhere else. An archive has no wills,
no replays and nothing of queues: of these no rule says anything, and the file says so. It needs no Spark.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from fanlight_permissions.permission_rule import ANONYMOUS_GROUP, UNFIT, pattern_of, spelled
from fanlight_permissions.topics import namespace_prefix
from fanlight_spark.coverage import covered
from fanlight_spark.merging import ANY_WORD
from fanlight_spark.topics import SEPARATORS

LEAST: Final = 4  # words that a wildcard takes the place of
ACTIONS: Final = ("publish", "retain", "request", "subscribe")
NOT_LITERAL: Final = frozenset({"#", "*", "+"})  # words of topics that mean something else in a filter

Words = tuple[str | None, ...]  # None: any one word


class Did(NamedTuple):
    """What proposals are made for, each: `user` is "" for anonymous clients."""

    namespace: str
    user: str
    action: str
    syntax: str


class Proposal(NamedTuple):
    """One filter for one user, as a file of permissions has it."""

    did: Did
    filter: str


def own_words(topic: str, syntax: str, user: str, client: str) -> Words:
    """The words of a topic or a filter as a rule has them; None where a rule cannot name the word."""
    separator = SEPARATORS[syntax]
    words = topic.split(separator)
    return tuple(_own(word, place, user, client, separator) for place, word in enumerate(words))


def _own(word: str, place: int, user: str, client: str, separator: str) -> str | None:
    for name, letter in ((user, "%u"), (client, "%c")):
        # The same names that rules take (docs/permissions.md).
        if word and word == name and not UNFIT & set(word) and not (place == 0 and word.startswith("$")):
            return letter
    return None if "%" in word or (NOT_LITERAL & set(word)) else word


def filters(topics: Iterable[Words], least: int = LEAST) -> list[Words]:
    """See the module. The first words that only filters with that very word reach ($SYS) are never a wildcard."""
    found = set(topics)
    widest = max(map(len, found), default=0)
    changed = True
    while changed:
        changed = False
        for place in reversed(range(widest)):
            groups: dict[Words, list[Words]] = defaultdict(list)
            for words in found:
                if len(words) > place and words[place] is not None and not (place == 0 and _reserved(words)):
                    groups[*words[:place], None, *words[place + 1 :]].append(words)
            for merged, instead_of in groups.items():
                if merged in found or len(instead_of) >= least:
                    found.difference_update(instead_of)
                    found.add(merged)
                    changed = True
    return [words for words in found if not _covered(words, found)]


def _reserved(words: Words) -> bool:
    return words[0] is not None and words[0].startswith("$")


def _covered(words: Words, by: set[Words]) -> bool:
    """By a filter with more wildcards? There are few places of them, or few filters."""
    known = [place for place, word in enumerate(words) if word is not None and not (place == 0 and _reserved(words))]
    if 1 << len(known) > len(by):
        return any(other != words and _covers(other, words) for other in by)
    for subset in range(1, 1 << len(known)):
        wider = list(words)
        for bit, place in enumerate(known):
            if subset >> bit & 1:
                wider[place] = None
        if tuple(wider) in by:
            return True
    return False


def _covers(wide: Words, narrow: Words) -> bool:
    if len(wide) != len(narrow) or (wide[0] is None and _reserved(narrow)):
        return False
    return all(w is None or w == n for w, n in zip(wide, narrow, strict=True))


def written(words: Words, syntax: str) -> str:
    """A filter as files of permissions have it."""
    text = SEPARATORS[syntax].join(ANY_WORD[syntax] if word is None else word for word in words)
    return spelled(text.encode("utf-8", "surrogateescape"), syntax)


def reached(proposal: Proposal) -> tuple[str, str]:
    """The filter for topics as they are archived, and its syntax: %u is the user, and %c may be any client."""
    pattern = pattern_of(proposal.filter)
    user = proposal.did.user.encode("utf-8", "surrogateescape")
    names = {probe: user for probe in pattern.probes if probe.letter == "u"}
    before = namespace_prefix(proposal.did.namespace, pattern.syntax) if proposal.did.namespace else b""
    return (before + pattern.filled(names)).decode("utf-8", "surrogateescape"), pattern.syntax


def filters_subscribed(given: Iterable[tuple[str, str]], syntax: str, user: str) -> list[str]:
    """Of (filter, client) the filters that cover the others, with own names."""
    separator, known = SEPARATORS[syntax], set()
    for text, client in given:
        words = [
            word if word in ("#", ANY_WORD[syntax]) else own
            for word, own in zip(text.split(separator), own_words(text, syntax, user, client), strict=True)
        ]
        known.add(separator.join(ANY_WORD[syntax] if word is None else word for word in words))
    spelt = [(text.encode("utf-8", "surrogateescape"), syntax) for text in sorted(known)]
    left_out = covered(spelt)
    return [spelled(text, syntax) for text, _ in spelt if (text, syntax) not in left_out]


def rules_file(proposals: Sequence[Proposal], about: str) -> str:
    """The text of a file of permissions. Raises ValueError of a user whose name a condition cannot say."""
    of_user: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in proposals:
        of_user[each.did.namespace, each.did.user][each.did.action].append(each.filter)
    exact: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    plain: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (namespace, user), did in of_user.items():
        alike[namespace, json.dumps({name: sorted(did[name]) for name in ACTIONS})].append(user)
    for (namespace, said), users in sorted(alike.items()):
        did = json.loads(said)
        who = namespace, tuple(sorted(users))
        first = {name: did[name] for name in ("retain", "request") if did[name]}
        if first:
            exact[who] = first
        plain[who] = {name: did[name] for name in ("publish", "subscribe") if did[name]}
    lines = [f"# {line}" for line in about.splitlines()]
    for who, keys in exact.items():
        lines += _rule("allow", who, keys)
    lines += ["", "# Retained messages and topics for replies elsewhere: nobody had them."]
    lines += ["[[deny]]", 'retain = "#"', 'request = "#"']
    for who, keys in plain.items():
        lines += _rule("allow", who, keys)
    return "\n".join(lines) + "\n"


def _rule(effect: str, who: tuple[str, tuple[str, ...]], keys: dict[str, list[str]]) -> list[str]:
    namespace, users = who
    for user in users:
        if user.endswith("*"):
            raise ValueError(f"the user {user!r}: a rule would take the * at the end for all users that begin so")
    lines = []
    named = [user for user in users if user]
    for condition, values in (("group", [ANONYMOUS_GROUP] * ("" in users)), ("user", named)):
        if values:
            lines += ["", f"[[{effect}]]", f"{condition} = {_toml(values)}"]
            lines += [f"namespace = {_toml([namespace])}"] * bool(namespace)
            lines += [f"{key} = {_toml(filters)}" for key, filters in keys.items()]
    return lines


def _toml(values: Sequence[str]) -> str:
    """A text, or a list of texts a line each: JSON's texts are TOML's, but for DEL."""
    texts = [json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F") for value in values]
    return texts[0] if len(texts) == 1 else "[\n" + "".join(f"    {text},\n" for text in texts) + "]"
