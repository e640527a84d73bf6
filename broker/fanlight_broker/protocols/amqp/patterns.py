"""Patterns of policies: regular expressions that are found in names, at a cost that is bounded.

RabbitMQ has PCRE; Python's `re` agrees with it in what names need. A name has at most 255 bytes, but an expression that
repeats what can be read in several ways takes exponential time on it. Such a one is refused, and of the others those
that may take more than about four times 256**3 steps: each unbounded repetition is 256, a beginning that is not
anchored is another, and alternatives multiply.
"""

import re
import warnings
from typing import Final

from fanlight_broker.core.errors import FanlightError

PATTERN_BYTES_MAX: Final = 1_024
STEPS_MAX: Final = 4 * 256**3  # some tenths of a second, in the worst case
NAME: Final = 256  # steps of a repetition without a bound
REPEATED: Final = re.compile(r"[*+?]|\{(\d*)(,?)(\d*)\}")
OPENED: Final = re.compile(r"\((\?(?:P<\w+>|:|[=!]|<[=!]|[aiLmsux-]*:))?")
REFERENCE: Final = re.compile(r"\\[0-9]|\(\?P=|\(\?\(")


class WrongPattern(FanlightError):
    """A regular expression that is none, or may take too long."""


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises WrongPattern."""
    if len(pattern.encode(errors="surrogatepass")) > PATTERN_BYTES_MAX:
        raise WrongPattern(f"pattern: more than {PATTERN_BYTES_MAX} bytes")
    try:
        with warnings.catch_warnings(action="ignore"):  # of `[[`, which may have another meaning one day
            found = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise WrongPattern(f"pattern should be regular expression but is invalid: {error}") from error
    if REFERENCE.search(pattern):
        raise WrongPattern("pattern: references to groups are not supported")
    if _steps(pattern) > STEPS_MAX:
        raise WrongPattern("pattern: it may take too long: fewer of * and +, a ^ in front, or fewer alternatives")
    return found


def _steps(pattern: str) -> int:
    """About as many as the longest name may take, of a valid expression. Raises WrongPattern for exponential ones."""
    plain = re.sub(r"\\.", "a", pattern, flags=re.DOTALL)  # an escape is one character
    plain = re.sub(r"\[\^?\]?[^\]]*\]", "a", plain)  # and so is a set
    steps = 1 if plain.startswith("^") and "|" not in re.sub(r"\(.*\)", "", plain) else NAME
    alternatives = [1]  # of the groups around this place, outermost first
    is_plain = [True]  # can what is in each be read in one way only?
    closed_plain = True  # of the group that ends just before this place
    at = 0
    while at < len(plain):
        if (opened := OPENED.match(plain, at)) is not None:
            alternatives.append(1)
            is_plain.append(True)
            at = opened.end()
            continue
        repeated = REPEATED.match(plain, at) if at else None
        if repeated is not None:
            at = repeated.end()
            if not closed_plain:
                raise WrongPattern("pattern: a group with repetitions or alternatives may not be repeated")
            steps *= _ways(repeated)
            is_plain[-1] = False
            at += plain[at : at + 1] in ("?", "+")  # the least of it, or without going back
        elif plain[at] == ")" and len(is_plain) > 1:
            steps *= alternatives.pop()
            closed_plain = is_plain.pop()
            is_plain[-1] = is_plain[-1] and closed_plain
            at += 1
            continue
        else:
            if plain[at] == "|":
                alternatives[-1] += 1
                is_plain[-1] = False
            at += 1
        closed_plain = True
    return steps * alternatives[0]


def _ways(repeated: re.Match[str]) -> int:
    if repeated[0] == "?":
        return 2
    if repeated[0] in ("*", "+"):
        return NAME
    least, comma, most = repeated.groups()
    if not comma:
        return 1
    return min(NAME, int(most) - int(least or 0) + 1) if most else NAME
