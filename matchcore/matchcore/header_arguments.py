"""AMQP's headers exchange: the arguments of a binding, as a selector.

    {"x-match": "all", "region": "eu", "urgent": None}        region = 'eu' AND urgent IS NOT NULL

    x-match      all (also without it): each header must fit      any: at least one
                 all-with-x, any-with-x: the same, and headers whose names begin with `x-` count, too
    a value      the header is equal to it; None (no value, or void): it is there

Source: AMQP 0-9-1, section 3.1.3.4 (the headers exchange), and RabbitMQ's headers exchange for `any` without headers,
which no message fits, and for the kinds with `-with-x`. One difference: a header without a value is absent, as null is
everywhere in selectors.
"""

import math
from collections.abc import Mapping

from matchcore.errors import InvalidSelector
from matchcore.selector import And, Attribute, Compare, Constant, Or, Present, Selector, Source
from matchcore.where import parse_where

__all__ = ["parse_header_arguments"]

X_MATCH = "x-match"
KINDS = ("all", "any", "all-with-x", "any-with-x")


def parse_header_arguments(arguments: Mapping[str, object]) -> Selector:
    """The selector of a binding. Raises InvalidSelector: its text is the name of an argument, its position is 0.

    The limits are those of a text (`parse_where`), for the text that the selector has.
    """
    kind = arguments.get(X_MATCH, "all")
    if kind not in KINDS:
        raise _invalid(X_MATCH, f"{kind!r:.40} is not known", f"use one of {', '.join(KINDS)}")
    with_x = str(kind).endswith("-with-x")
    tests = tuple(
        _test(name, wanted) for name, wanted in arguments.items()
        if name != X_MATCH and (with_x or not name.startswith("x-"))
    )
    all_of_them = str(kind).startswith("all")
    if not tests:
        return Constant(all_of_them)
    joined = tests[0] if len(tests) == 1 else And(tests) if all_of_them else Or(tests)
    return parse_where(str(joined))


def _test(name: str, wanted: object) -> Compare | Present:
    if not name:
        raise _invalid(name, "a header without a name", "name the header")
    attribute = Attribute(Source.HEADER, (name,))
    if wanted is None:
        return Present(attribute)
    if not isinstance(wanted, (bool, int, float, str)) or (isinstance(wanted, float) and not math.isfinite(wanted)):
        raise _invalid(name, f"a header cannot be compared with {wanted!r:.40}", "use text, a number, true or no value")
    return Compare(attribute, "=", wanted)


def _invalid(name: str, reason: str, advice: str) -> InvalidSelector:
    return InvalidSelector(name.encode("utf-8", "surrogatepass"), 0, reason, advice)
