"""Scopes: the key words of a permission table, and how filters and topics stand behind them.

    Kind    what rules of one key word have in common, beside their party: actions, effect, places of names
    Scope   one key word for one permission class, with its names

    rule of party 1, kind 0, on site/%u/#      1k0/site/+/#           asked only for topics with the name in its place
    topic site/a/t, asked by one of party 1    1k0/site/a/t
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fanlight_permissions.permission_rule import UNFIT, Pattern, Probe, fits
from fanlight_permissions.topics import SEPARATORS


class Kind(NamedTuple):
    """What rules of one key word have in common, beside their party."""

    actions: int  # BITS
    probes: tuple[Probe, ...]
    allow: bool
    syntax: str  # of the filters, where there are probes: it decides which names are words
    reserved: bool  # do its filters reach RESERVED?


Probes = tuple[tuple[int, tuple[bytes, ...]], ...]
"""Places of names in a topic, and the words that may stand there."""


class Scope(NamedTuple):
    """One key word, for one class."""

    word: bytes
    before: Mapping[str, bytes]  # the key word and the separator, by syntax
    reserved: bool
    probes: Probes
    unfit: bool  # one of the names is no word of a filter


def kind_of(actions: int, pattern: Pattern, allow: bool) -> Kind:
    reserved = not (allow and pattern.begins_with_wildcard) or _is_name(pattern)
    return Kind(actions, pattern.probes, allow, pattern.syntax if pattern.probes else "", reserved)


def _is_name(pattern: Pattern) -> bool:
    """Does it begin with a name? No name that is put there begins with `$`."""
    return any(probe.position == 1 for probe in pattern.probes)


def key_word(party: int, kind: int) -> bytes:
    return b"%xk%x" % (party, kind)


def behind(word: bytes, text: bytes, syntax: str) -> bytes:
    """A filter or topic behind a key word."""
    return word + SEPARATORS[syntax] + text if text else word


def is_word(name: str, syntax: str) -> bool:
    """Can a name stand in a filter as a word that is no wildcard?"""
    return name != "" and UNFIT.isdisjoint(name) and SEPARATORS[syntax].decode() not in name


def scope_of(word: bytes, kind: Kind, names: Mapping[str, tuple[str, ...]]) -> Scope | None:
    """Of a key word, for a class whose names these are, by their letters. None: no name of the class fits."""
    probes: list[tuple[int, tuple[bytes, ...]]] = []
    unfit = False
    for probe in kind.probes:
        own = names[probe.letter]
        if kind.allow:
            own = tuple(name for name in own if fits(name, probe, kind.syntax))
        if not own:
            return None
        unfit |= any(not is_word(name, kind.syntax) for name in own)
        probes.append((probe.position, tuple(name.encode("utf-8", "surrogatepass") for name in own)))
    before = {syntax: word + separator for syntax, separator in SEPARATORS.items()}
    return Scope(word, before, kind.reserved, tuple(probes), unfit)


def words_of(topic: bytes, syntax: str) -> list[bytes]:
    return topic.split(SEPARATORS[syntax]) if topic else []


def met(scope: Scope, topic: bytes, syntax: str) -> bool:
    """Has the topic the names in their places? It may be too short for the filter: then that does not match."""
    return has_names(words_of(topic, syntax), scope.probes)


def has_names(words: Sequence[bytes], probes: Probes) -> bool:
    for position, names in probes:
        place = position - 1 if position > 0 else position
        if not -len(words) <= place < len(words) or words[place] not in names:
            return False
    return True


def filled(scope: Scope, filter: bytes, syntax: str) -> list[bytes]:
    """A filter behind a key word, with names in place of wildcards. Only `%g` has several, and it is there once."""
    if not scope.probes:
        return [filter]
    made = [filter.split(SEPARATORS[syntax])]
    for place, names in scope.probes:  # from 1: the key word is the first
        made = [[*words[:place], name, *words[place:][1:]] for words in made for name in names]
    return [SEPARATORS[syntax].join(words) for words in made]
