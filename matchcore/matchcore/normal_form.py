"""A selector without NOT, for engines that know two values: NOT is pushed down to the tests.

    NOT (a AND b)              NOT a OR NOT b
    NOT AT LEAST k OF n        AT LEAST n-k+1 OF the n, each negated
    NOT a = 1                  the test, negated: true where `a` can be compared with 1 and is not 1

AND, OR and AT LEAST are monotone: a part that becomes true makes no whole false. So a test that is unknown may count as
false, and the whole is true exactly where Kleene's logic says true (kleene.py), which is all that delivery asks for.
"""

from collections.abc import Callable
from dataclasses import dataclass

from matchcore.selector import And, AtLeast, Constant, Not, Or, Selector, Test

__all__ = ["AllOf", "AnyOf", "HitsOf", "Leaf", "Normal", "normal_form"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A test. Negated: true where the test is false, so not where it is unknown."""

    test: Test
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Normal", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Normal", ...]


@dataclass(frozen=True, slots=True)
class HitsOf:
    """True where `count` or more of the parts are; 1 < count < len(parts)."""

    count: int
    parts: tuple["Normal", ...]


Normal = Leaf | AllOf | AnyOf | HitsOf


def normal_form(selector: Selector) -> Normal:
    """The selector without NOT and constants; `AllOf(())` is always true, `AnyOf(())` never."""
    return _normal(selector, negated=False)


def holds(normal: Normal, is_true: Callable[[Leaf], bool]) -> bool:
    """Whether it holds where `is_true` says so of each test."""
    match normal:
        case Leaf():
            return is_true(normal)
        case AllOf(parts):
            return all(holds(part, is_true) for part in parts)
        case AnyOf(parts):
            return any(holds(part, is_true) for part in parts)
        case HitsOf(count, parts):
            return sum(holds(part, is_true) for part in parts) >= count


def _normal(selector: Selector, negated: bool) -> Normal:
    match selector:
        case Constant(value):
            return _counted(0 if value is not negated else 1, ())
        case Not(part):
            return _normal(part, not negated)
        case And(parts):
            count = len(parts)
        case Or(parts):
            count = 1
        case AtLeast(count, parts):
            pass
        case _:
            return Leaf(selector, negated)
    if negated:
        count = len(parts) - count + 1
    return _counted(count, tuple(_normal(part, negated) for part in parts))


def _counted(count: int, parts: tuple[Normal, ...]) -> Normal:
    """`count` or more of the parts, in its simplest spelling; parts that always or never hold are left out."""
    always, never = AllOf(()), AnyOf(())
    count -= parts.count(always)
    parts = tuple(part for part in parts if part not in (always, never))
    if count <= 0:
        return always
    if count > len(parts):
        return never
    if len(parts) == 1:
        return parts[0]
    if count == 1:
        return AnyOf(parts)
    return AllOf(parts) if count == len(parts) else HitsOf(count, parts)
