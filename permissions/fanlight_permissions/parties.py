"""Parties: the different sets of conditions on the asker that rules have, and which of them an asker meets.

    user = "alice"                     one attribute with one value: found by it (names.py)
    user = ["alice", "bob"]            ... several: found in a dict
    client = "pump-*"                  ... by the beginnings of the value, of the lengths that rules have
    address = "10.0.0.0/8"             ... by the networks of the address, of the lengths that rules have
    user = "alice", protocol = "mqtt"  several: a rule of a matchcore.RuleIndex, whose conditions are all true

What an asker may do depends on the parties that it meets, and on nothing else but names in the place of `%u`. So they
make its permission class.
"""

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from sys import getsizeof
from typing import Final

from fanlight_permissions.decisions import Asker
from fanlight_permissions.names import NOT_THERE, NameTable
from fanlight_permissions.permission_rule import ANONYMOUS_GROUP, ATTRIBUTES, STARRED, Who
from matchcore.rules import RuleIndex
from matchcore.selector import And, Attribute, Compare, In, Like, Or, Selector, Source

EVERYBODY: Final = 0  # the party without conditions
FORGOTTEN_AT_ONCE: Final = 1_000
PARTS: Final = 64
EXACT: Final = -1  # in place of a length: the whole value

Found = int | tuple[int, ...]


class Parties:
    """Numbers of sets of conditions, from 0.

    expected  rules, about
    """

    def __init__(self, expected: int = 0) -> None:
        # Without those of one name. In parts: one large dict would grow in a step that is felt.
        self._numbers: tuple[dict[Who, int], ...] = tuple({} for _ in range(PARTS))
        self._count = 1
        self._expected = expected
        self._named: dict[str, NameTable] = {}  # by attribute: those whose only condition is one exact value
        # By attribute, then by the length of the beginning that is compared (bits of an address), then by that.
        self._plain: dict[str, dict[int, dict[str | int, Found]]] = {}
        self._joined = RuleIndex()  # those with several attributes

    def __len__(self) -> int:
        return self._count

    def number(self, who: Who) -> int:
        """The number of these conditions, a new one if need be."""
        if is_name(who):
            return self.named(who[0][0], who[0][1][0])
        if not who:
            return EVERYBODY
        numbers = self._numbers[hash(who) % PARTS]
        found = numbers.get(who)
        if found is not None:
            return found
        number = numbers[who] = self._count
        self._count += 1
        if len(who) == 1:
            attribute, values = who[0]
            for value in values:
                length, key = _place(attribute, value)
                table = self._plain.setdefault(attribute, {}).setdefault(length, {})
                table[key] = _more(table.get(key), number)
        else:
            self._joined.insert(And(tuple(_selector(*each) for each in who)), number)
        return number

    def named(self, attribute: str, name: str) -> int:
        """The number of the one condition that an attribute has this value, and no more than this (`is_name`)."""
        table = self._named.get(attribute)
        if table is None:
            table = self._named[attribute] = NameTable(self._expected)
        number = table.find(name)
        if number == NOT_THERE:
            number = self._count
            self._count += 1
            table.add(name, number)
        return number

    def forget(self, pause: Callable[[], None]) -> None:
        """No rule will be inserted any more: the conditions are not needed, only who meets them."""
        for numbers in self._numbers:
            while numbers:
                for _ in range(min(len(numbers), FORGOTTEN_AT_ONCE)):
                    numbers.popitem()
                pause()

    @property
    def nbytes(self) -> int:
        """Bytes of memory, once the conditions are forgotten."""
        tables = [table for by_length in self._plain.values() for table in by_length.values()]
        values = sum(getsizeof(key) + getsizeof(found) for table in tables for key, found in table.items())
        named = sum(table.nbytes for table in self._named.values())
        return sum(map(getsizeof, tables)) + values + named + self._joined.nbytes

    def conditions(self) -> list[Who]:
        """By their numbers."""
        found: dict[int, Who] = {EVERYBODY: ()}
        for numbers in self._numbers:
            found.update((number, who) for who, number in numbers.items())
        for attribute, table in self._named.items():
            found.update((number, ((attribute, (name,)),)) for name, number in table.items())
        return [found[number] for number in range(self._count)]

    def of(self, asker: Asker) -> frozenset[int]:
        """The parties whose conditions an asker meets."""
        met = {EVERYBODY}
        groups = groups_of(asker)
        bits = bits_of(asker.address)
        for attribute, table in self._named.items():
            for name in groups if attribute == "group" else (getattr(asker, attribute),):
                number = table.find(name)
                if name and number != NOT_THERE:
                    met.add(number)
        for attribute, by_length in self._plain.items():
            if attribute == "address":
                _find_network(by_length, bits, met)
            elif attribute == "group":
                for group in groups:
                    _find(by_length, group, met)
            else:
                _find(by_length, getattr(asker, attribute), met)
        if len(self._joined):
            fact = {
                each: getattr(asker, each) or None for each in ATTRIBUTES if each not in ("group", "address")
            }
            for group in groups or ("",):
                matching = self._joined.matches({**fact, "group": group or None, "address": bits or None})
                met.update(rule.result for rule in matching)
        return frozenset(met)


def groups_of(asker: Asker) -> Iterable[str]:
    """Its groups, and `anonymous` if its user is not known."""
    return asker.groups if asker.user else asker.groups | {ANONYMOUS_GROUP}


def is_name(who: Who) -> bool:
    """Are these conditions one name, compared as it is?"""
    return (
        len(who) == 1 and len(who[0][1]) == 1 and who[0][0] != "address" and not starred(who[0][0], who[0][1][0])
    )


def starred(attribute: str, value: str) -> bool:
    """Does it stand for all values that begin like it?"""
    return attribute in STARRED and value.endswith("*")


def meets(attribute: str, values: Iterable[str], asker: Asker) -> bool:
    """Does an asker meet one condition?"""
    if attribute == "address":
        own: Iterable[str] = (bits_of(asker.address),)
    else:
        own = groups_of(asker) if attribute == "group" else (getattr(asker, attribute),)
    return any(each and _stands_for(attribute, value, each) for each in own for value in values)


def within(attribute: str, value: str, other: str) -> bool:
    """Does each asker that has this value of an attribute have the other one, too?"""
    if attribute == "address":
        return bits_of_network(value).startswith(bits_of_network(other))
    if starred(attribute, value):
        return starred(attribute, other) and value[:-1].startswith(other[:-1])
    return _stands_for(attribute, other, value)


def implies(who: Who, other: Who) -> bool:
    """Does each asker that meets these conditions meet the others, too? Value by value: what is True is so."""
    own = dict(who)
    return all(
        attribute in own and all(any(within(attribute, value, each) for each in values) for value in own[attribute])
        for attribute, values in other
    )


def excludes(who: Who, other: Who) -> bool:
    """Is there no asker that meets both?"""
    own = dict(who)
    return any(
        attribute in own and attribute != "group" and not any(
            within(attribute, value, each) or within(attribute, each, value)
            for value in own[attribute] for each in values
        )
        for attribute, values in other
    )


def sample(who: Who) -> Asker:
    """One that meets the conditions."""
    given = {attribute: values[0] for attribute, values in who}
    for attribute in STARRED & given.keys():
        given[attribute] = given[attribute].removesuffix("*") + "\x01" * starred(attribute, given[attribute])
    groups = frozenset({given.pop("group")}) if "group" in given else frozenset()
    address = given.pop("address", "").partition("/")[0]
    return Asker(groups=groups, address=address, **given)


def _stands_for(attribute: str, value: str, own: str) -> bool:
    if attribute == "address":
        return own.startswith(bits_of_network(value))
    return own.startswith(value[:-1]) if starred(attribute, value) else own == value


def bits_of(address: str) -> str:
    """The version of an address and its bits, as text: `4` and 32 of them. "" for what is no address.

    An IPv4 address in IPv6 is the IPv4 address.
    """
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return f"{found.version}{int(found):0{found.max_prefixlen}b}"


def bits_of_network(text: str) -> str:
    """How the bits of each address of a network begin."""
    network = ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is not None and network.prefixlen >= 96:
        network = ip_network((int(mapped), network.prefixlen - 96))
    return f"{network.version}{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen + 1]


def _place(attribute: str, value: str) -> tuple[int, str | int]:
    if attribute == "address":
        bits = bits_of_network(value)
        return len(bits), bits
    if starred(attribute, value):
        return len(value) - 1, value[:-1]
    return EXACT, value


def _more(found: Found | None, number: int) -> Found:
    if found is None:
        return number
    held = (found,) if isinstance(found, int) else found
    return found if number in held else (*held, number)


def _find(by_length: dict[int, dict[str | int, Found]], value: str, met: set[int]) -> None:
    if not value:
        return
    for length, table in by_length.items():
        if length == EXACT or length <= len(value):
            _add(table.get(value if length == EXACT else value[:length]), met)


def _find_network(by_length: dict[int, dict[str | int, Found]], bits: str, met: set[int]) -> None:
    for length, table in by_length.items():
        if length <= len(bits):
            _add(table.get(bits[:length]), met)


def _add(found: Found | None, met: set[int]) -> None:
    if isinstance(found, int):
        met.add(found)
    elif found is not None:
        met.update(found)


def _selector(attribute: str, values: tuple[str, ...]) -> Selector:
    name = Attribute(Source.HEADER, (attribute,))
    tests: list[Selector] = []
    exact = values
    if attribute == "address":
        exact = ()
        tests += [Like(name, f"{bits_of_network(value)}%") for value in values]
    elif attribute in STARRED:
        exact = tuple(value for value in values if not starred(attribute, value))
        tests += [Like(name, f"{_plain(value[:-1])}%", "\\") for value in values if starred(attribute, value)]
    if len(exact) == 1:
        tests.append(Compare(name, "=", exact[0]))
    elif exact:
        tests.append(In(name, exact))
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


def _plain(text: str) -> str:
    return "".join(f"\\{each}" if each in "\\%_" else each for each in text)
