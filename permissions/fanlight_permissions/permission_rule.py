"""A permission rule: who may, or may not, do what on which topics. permission_file.py reads them.

    who        user, group, client, certificate, address, protocol, listener: one of the values of each
    patterns   filters, each with the actions that it is for; %u, %c and %g are the user, the client and a group
    where      a selector that the message must meet

`%u` is a whole word of a pattern. In the filter it stands as the wildcard for any one word, and its place is noted as a
probe: the rule applies only if the topic has the name there. So no character of a name can ever act as a wildcard.

    site/%u/#       ->     filter site/+/#, probe (u, 2)
    #.%u.state      ->     filter #.*.state, probe (u, -2): counted from the end, as it stands behind the #
"""

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final, NamedTuple

from fanlight_permissions.decisions import Action
from fanlight_permissions.topics import ANY_WORDS, SEPARATORS, SYNTAXES
from matchcore.selector import Selector

ANY_TOPIC: Final = b"#"
ATTRIBUTES: Final = ("user", "group", "client", "certificate", "address", "protocol", "listener", "namespace")
FORMED: Final = frozenset({"address", "protocol"})  # whose values have one form, or may be refused: `value_of`
STARRED: Final = frozenset({"user", "group", "client", "certificate"})  # whose values may end in `*`
ANONYMOUS_GROUP: Final = "anonymous"  # of those whose user name is not verified
LETTERS: Final = "ucg"  # of `%u`, `%c`, `%g`
WILD: Final = (b"#", b"+", b"*")  # what a wildcard begins with
UNFIT: Final = frozenset("+#*\0")  # characters of a name that is not put in the place of `%u`

BITS: Final = {action: 1 << place for place, action in enumerate(Action)}

# What each key of a rule stands for. Whoever may publish on a topic may also do what else a publish can do there: it
# reaches nobody whom a plain message would not reach.
KEYS_OF_ACTIONS: Final[dict[str, tuple[Action, ...]]] = {
    "connect": (Action.CONNECT,),
    "publish": (Action.PUBLISH, Action.RETAIN, Action.WILL, Action.REQUEST),
    "subscribe": (Action.SUBSCRIBE,),
    "retain": (Action.RETAIN,),
    "will": (Action.WILL,),
    "request": (Action.REQUEST,),
    "replay": (Action.REPLAY,),
    "queue": (Action.QUEUE,),
    "everything": tuple(
        action for action in Action if action not in (Action.CONNECT, Action.ADMIN_READ, Action.ADMIN_WRITE)
    ),
    "admin": (Action.ADMIN_READ, Action.ADMIN_WRITE),
}
ACTION_BITS: Final = {key: sum(BITS[action] for action in actions) for key, actions in KEYS_OF_ACTIONS.items()}
# What a message can meet a selector in. Whoever subscribes sets a selector of its own.
ON_MESSAGES: Final = ACTION_BITS["publish"]

Who = tuple[tuple[str, tuple[str, ...]], ...]
"""Attributes, in the order of ATTRIBUTES, each with values, of which the asker has one. (): everybody."""


class Probe(NamedTuple):
    """A word of the topic that is a name of the asker: counted from 1, or from -1 at the end."""

    letter: str
    position: int


class Pattern(NamedTuple):
    """A filter of a rule. `text` is as it was written, `filter` has wildcards in the place of names."""

    text: bytes
    filter: bytes
    syntax: str
    probes: tuple[Probe, ...] = ()

    @property
    def begins_with_wildcard(self) -> bool:
        return starts_wild(self.filter, self.syntax)

    def filled(self, names: dict[Probe, bytes]) -> bytes:
        """The filter with these names in it."""
        words = self.filter.split(SEPARATORS[self.syntax])
        for probe, name in names.items():
            words[probe.position - 1 if probe.position > 0 else probe.position] = name
        return SEPARATORS[self.syntax].join(words)

    def __str__(self) -> str:
        return spelled(self.text, self.syntax)


@dataclass(slots=True, eq=False)  # not frozen: that takes half of the time of reading a file
class PermissionRule:
    """number: in the order of the file, from 0. line: of the file, where it begins or, in CSV, ends."""

    number: int
    line: int
    name: str | None
    allow: bool
    who: Who
    patterns: tuple[tuple[int, Pattern], ...]  # bits of actions (BITS), and where
    salience: int | float = 0
    where: Selector | None = None

    @property
    def place(self) -> str:
        return f"line {self.line}"

    @property
    def label(self) -> str:
        """Its name, or its place."""
        return self.name if self.name is not None else self.place

    @property
    def order(self) -> tuple[int | float, int]:
        return self.salience, self.number

    def __str__(self) -> str:
        """`rule 'sensors' (line 4)`, or `the rule of line 4`."""
        return f"rule {self.name!r} ({self.place})" if self.name is not None else f"the rule of {self.place}"

    @property
    def effect(self) -> str:
        return "allow" if self.allow else "deny"


class WrongPattern(ValueError):
    """What is wrong with a filter of a rule."""


def pattern_of(text: str) -> Pattern:
    """A filter of a rule. Raises WrongPattern for what is wrong with its names; what else may be wrong is found by the
    matcher.
    """
    octets, syntax = spelling_of(text)
    return Pattern(octets, octets, syntax) if b"%" not in octets else _with_names(octets, syntax)


def spelling_of(text: str) -> tuple[bytes, str]:
    """A filter or topic and its syntax: MQTT's if it has `/` or `+` in it, else AMQP's, or the one that is named before
    a colon.
    """
    if ":" in text:
        for syntax in SYNTAXES:
            if text.startswith(f"{syntax}:"):
                return text[len(syntax) + 1 :].encode(), syntax
    return text.encode(), "mqtt" if "/" in text or "+" in text else "amqp"


def _with_names(text: bytes, syntax: str) -> Pattern:
    separator, any_word = SEPARATORS[syntax], ANY_WORDS[SYNTAXES.index(syntax) :][:1]
    words = text.split(separator)
    hashes = [place for place, word in enumerate(words) if word == ANY_TOPIC]
    probes: list[Probe] = []
    for place, word in enumerate(words):
        found = [letter for letter in LETTERS if b"%" + letter.encode() in word]
        if not found:
            continue
        if len(word) > 2:
            raise WrongPattern(f"%{found[0]} stands for a whole word, and here it is a part of {word.decode()!r}")
        if any(probe.letter == "g" for probe in probes) and found[0] == "g":
            raise WrongPattern("%g stands at most once in a filter: a client may be in several groups")
        if hashes and place > hashes[0] and any(place < each for each in hashes):
            raise WrongPattern(f"%{found[0]} stands between two #, and could be any word there")
        behind = bool(hashes) and place > hashes[0]
        probes.append(Probe(found[0], place - len(words) if behind else place + 1))
        words[place] = any_word
    return Pattern(text, separator.join(words), syntax, tuple(probes))


def spelled(filter: bytes, syntax: str) -> str:
    """A filter as the file has it, with its syntax before it only where it would be taken for one of the other."""
    text = filter.decode(errors="replace")
    named = any(text.startswith(f"{each}:") for each in SYNTAXES)
    same = text == "#" or not any(each in text for each in "./+*#")  # one word is the same in both
    plain = "mqtt" if "/" in text or "+" in text else "amqp"
    return text if not named and (same or plain == syntax) else f"{syntax}:{text}"


def starts_wild(filter: bytes, syntax: str) -> bool:
    if filter[:1] not in WILD:
        return False
    return filter.split(SEPARATORS[syntax], 1)[0] in (ANY_TOPIC, ANY_WORDS[SYNTAXES.index(syntax) :][:1])


def fits(name: str, probe: Probe, syntax: str) -> bool:
    """May a name stand in the place of a word of an allowing rule of this syntax?"""
    return (
        name != "" and UNFIT.isdisjoint(name) and SEPARATORS[syntax].decode() not in name
        and not (probe.position == 1 and name.startswith("$"))
    )


def value_of(attribute: str, text: str) -> str:
    """A value of an attribute in its one form: of an address, the network. Raises ValueError."""
    if attribute == "protocol" and " " in text:
        raise ValueError(f"protocol is {text!r}; name it without a version: {text.split()[0]}")
    if attribute != "address":
        return text
    try:
        return str(ip_network(text))
    except ValueError as error:
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            raise ValueError(f"{text!r} is no address and no network such as 10.0.0.0/8 or 2001:db8::/32") from None
        raise ValueError(f"{error}; write {network} for the network, or {text.split('/')[0]} for one host") from None
