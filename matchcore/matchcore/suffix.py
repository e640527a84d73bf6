"""EMQX's subscription filters: what stands behind the `?` of `sensor/+/t?location=roomA&value>25`, as a selector.

    expression = clause {"&" clause}          all of them must hold
    clause     = key "=" text                 the header is this text
               | key (">" | "<" | ">=" | "<=") number

A key is the name of a header, a User Property in MQTT. Blanks around keys, values and clauses are left out. There is no
escape: none of `&`, `=`, `<` and `>` can be in a key or a value. Quotation marks and percent signs have no meaning.

Source: EMQX 6.2, "Subscription Filters" and `subscription_message_filter`. Two differences: `!=` is refused, and is not
read as a key that ends in `!`; and of several headers of one name the first counts, not any.
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from matchcore.errors import InvalidSelector
from matchcore.grammar import split_suffix
from matchcore.selector import And, Attribute, Compare, Selector, Source
from matchcore.where import MAX_LEAVES, decoded, parse_where

__all__ = ["parse_suffix", "split_suffix"]

BLANKS = " \t\r\n"
OPERATOR = re.compile(r"[<>]=?|=")
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
EXAMPLE = "write a clause such as location=roomA or value>25"
SAY_IT_IN_SQL = "write the condition as a selector in SQL, which can say it"


def parse_suffix(expression: str | bytes) -> Selector:
    """The selector of an expression, without its `?`: at most 4 KiB of UTF-8, 64 clauses.

    Raises InvalidSelector, with the byte offset in the expression and an advice.
    """
    return _SuffixReading(expression).whole()


class _SuffixReading:
    def __init__(self, expression: str | bytes) -> None:
        self._text, self._encoded = decoded(expression)

    def whole(self) -> Selector:
        tests: list[Compare] = []
        for start, end in self._clauses():
            if len(tests) == MAX_LEAVES:
                self._invalid(start, f"more than {MAX_LEAVES} clauses", "use several subscriptions")
            tests.append(self._clause(start, end))
        return parse_where(str(tests[0] if len(tests) == 1 else And(tuple(tests))))  # which has the limits of a text

    def _clauses(self) -> Iterator[tuple[int, int]]:
        """Where each begins and ends in the text, without the blanks around it."""
        start = 0
        for clause in self._text.split("&"):
            yield self._trimmed(start, start + len(clause))
            start += len(clause) + 1

    def _clause(self, start: int, end: int) -> Compare:
        if start == end:
            self._invalid(start, "an empty clause", EXAMPLE)
        found = OPERATOR.search(self._text, start, end)
        if found is None:
            self._invalid(end, "a clause without an operator", EXAMPLE)
        if (second := OPERATOR.search(self._text, found.end(), end)) is not None:
            self._invalid(second.start(), f"a second {second[0]} in one clause", SAY_IT_IN_SQL)
        key_start, key_end = self._trimmed(start, found.start())
        if key_start == key_end:
            self._invalid(key_start, f"no key before {found[0]}", EXAMPLE)
        if found[0] == "=" and self._text[key_end - 1] == "!":
            self._invalid(key_end - 1, "!= is no operator here", SAY_IT_IN_SQL)
        value_start, value_end = self._trimmed(found.end(), end)
        if value_start == value_end:
            self._invalid(value_start, f"no value behind {found[0]}", EXAMPLE)
        attribute = Attribute(Source.HEADER, (self._text[key_start:key_end],))
        if found[0] == "=":
            return Compare(attribute, "=", self._text[value_start:value_end])
        return Compare(attribute, found[0], self._number(value_start, value_end, found[0]))

    def _number(self, start: int, end: int, operator: str) -> int | float:
        text = self._text[start:end]
        if NUMBER.fullmatch(text) is None:
            self._invalid(start, f"{operator} compares numbers, found {text[:20]!r}", "write one such as 25 or -1.5")
        try:
            test = parse_where(f"x {operator} {text}")
        except InvalidSelector as error:
            self._invalid(start, error.reason, error.advice)
        assert isinstance(test, Compare)
        assert not isinstance(test.value, (bool, str))
        return test.value

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        while start < end and self._text[start] in BLANKS:
            start += 1
        while start < end and self._text[end - 1] in BLANKS:
            end -= 1
        return start, end

    def _invalid(self, at: int, reason: str, advice: str) -> NoReturn:
        raise InvalidSelector(self._encoded, len(self._text[:at].encode()), reason, advice)
