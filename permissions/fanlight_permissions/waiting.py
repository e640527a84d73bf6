"""Rules that wait for somebody whom they are about. A file may have rules for 100,000 users, of whom few are there.

    a rule of one name --> packed behind its party: 40 bytes and the filter             nobody of it is there
    first class with this party    --> its rules are put into the index: 300 bytes each
    last one gone, and 1,024 other parties since                       --> taken out

Rules of parties that have more than OWN_BYTES of them, or other conditions than one name, are in the index from the
beginning. What a class meets is in the index before it is asked, so nothing that decides knows of this.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol

OWN_BYTES: Final = 1_024  # of packed rules of a party, some 30: to put them into the index takes 50 µs
IDLE_PARTIES: Final = 1_024  # whose rules stay in the index although nobody is there
OUT_AT_ONCE: Final = 4  # parties whose rules are taken out, each time one's are put in
RECORD: Final = Struct("<IHBH")  # place of the rule, kind, is it in the syntax of MQTT?, bytes of the filter


class PackedRule(NamedTuple):
    rank: int
    kind: int
    is_mqtt: int
    filter: bytes


class RuleIndexer(Protocol):
    """Puts a rule of a party into the index, and takes it out again."""

    def put_in(self, party: int, rule: PackedRule) -> None: ...

    def take_out(self, party: int, rule: PackedRule) -> None: ...


class WaitingRules:
    """Packed by party. It does not refer to the index, which refers to it: so both are freed when they are left."""

    def __init__(self) -> None:
        self.packed: list[bytes | None] = []  # by party; None: not kept here
        self._held: dict[int, int] = {}  # parties whose rules are in the index, with the classes that have them
        self._idle: dict[int, None] = {}  # those of them without any, the longest first

    def keep(self, party: int, rule: bytes, index: RuleIndexer) -> bool:
        """Keep a rule (`packed_rule`) of a party whose rules wait. True: it had too many, and they are in the index."""
        own = self.packed[party]
        assert own is not None
        own += rule
        self.packed[party] = own
        if len(own) <= OWN_BYTES:
            return False
        self.give_up(party, index)
        return True

    def give_up(self, party: int, index: RuleIndexer) -> None:
        """Its rules are in the index from now on: it has too many."""
        own, self.packed[party] = self.packed[party], None
        if own is not None:
            for rule in unpacked(own):
                index.put_in(party, rule)

    def come(self, parties: frozenset[int], index: RuleIndexer) -> None:
        """There is one more class with these parties."""
        for party in parties:
            own = self.packed[party]
            if own is None:
                continue
            self._idle.pop(party, None)
            if party not in self._held:
                for rule in unpacked(own):
                    index.put_in(party, rule)
                self._held[party] = 0
            self._held[party] += 1
        for _ in range(OUT_AT_ONCE):
            if len(self._idle) <= IDLE_PARTIES:
                break
            self._forget(next(iter(self._idle)), index)

    def go(self, parties: frozenset[int]) -> None:
        """There is one less."""
        for party in parties:
            if party in self._held:
                self._held[party] -= 1
                if not self._held[party]:
                    self._idle[party] = None

    def _forget(self, party: int, index: RuleIndexer) -> None:
        del self._idle[party], self._held[party]
        own = self.packed[party]
        assert own is not None
        for rule in unpacked(own):
            index.take_out(party, rule)

    @property
    def nbytes(self) -> int:
        return self.packed.__sizeof__() + sum(own.__sizeof__() for own in self.packed if own)


def packed_rule(rank: int, kind: int, is_mqtt: int, filter: bytes) -> bytes:
    return RECORD.pack(rank, kind, is_mqtt, len(filter)) + filter


def unpacked(own: bytes) -> Iterator[PackedRule]:
    at = 0
    while at < len(own):
        rank, kind, is_mqtt, size = RECORD.unpack_from(own, at)
        at += RECORD.size + size
        yield PackedRule(rank, kind, is_mqtt, own[at - size : at])
