"""The rules of a TOML file of permissions, in their order, and in pieces: a large file keeps nobody from going on.

    [[allow]]  -->  [[rule]], which tomllib reads  -->  GivenRule, with the line and the effect of its header
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from fanlight_permissions.csv_rows import EFFECTS, GivenRule

PIECE: Final = 64 * 1024  # characters, some 0.5 ms
HEADER: Final = re.compile(r"^([ \t]*\[\[[ \t]*)(allow|deny)([ \t]*\]\][ \t]*(?:#.*)?\r?)$", re.MULTILINE)
OWN_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*rule[ \t]*\]\]", re.MULTILINE)


def with_one_header(text: str, pause: Callable[[], None]) -> tuple[str, list[tuple[int, str]]]:
    """The text with [[rule]] in place of each header of a rule, and their lines and effects. In pieces of whole lines.

    The order of [[allow]] and [[deny]] counts, and tomllib has them in two lists. So both are read as [[rule]]; which
    is which, and its line, is found beside it. A line of a text that looks like one is found by their number.
    """
    pieces: list[str] = []
    headers: list[tuple[int, str]] = []
    line = begin = 0
    while begin < len(text):
        end = text.find("\n", begin + PIECE) + 1 or len(text)
        piece = text[begin:end]
        if OWN_HEADER.search(piece):
            raise ValueError("there is no [[rule]]; begin each rule with a line [[allow]] or [[deny]]")
        at = 0
        for found in HEADER.finditer(piece):
            line += piece.count("\n", at, found.start())
            at = found.start()
            headers.append((line, found[2]))
        line += piece.count("\n", at)
        pieces.append(HEADER.sub(r"\1rule\3", piece))
        begin = end
        pause()
    return "".join(pieces), headers


def given_rules(headers: list[tuple[int, str]], rows: list[dict[str, Any]]) -> Iterator[GivenRule]:
    """As many of either. Each is freed then, as in `_drained`."""
    headers.reverse()
    rows.reverse()
    while headers:
        line, effect = headers.pop()
        yield GivenRule(line + 1, EFFECTS[effect], rows.pop())
