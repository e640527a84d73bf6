"""The text of a selector, read into its tree: the syntax of JMS, which is that of conditions in SQL-92.

    region IN ('eu', 'us') AND (price > 100 OR payload.order.urgent)
    AT LEAST 2 OF (a = 1, b = 1, c = 1)         $word[2] LIKE 'temp%'         "x-trace" IS NOT NULL

    condition = all {OR all}           all = one {AND one}           one = NOT one | primary
    primary   = "(" condition ")" | TRUE | FALSE | AT LEAST count OF "(" condition {"," condition} ")" | test
    test      = attribute | attribute operator literal | literal operator attribute
              | attribute [NOT] BETWEEN literal AND literal | attribute [NOT] IN "(" literal {"," literal} ")"
              | attribute [NOT] LIKE text [ESCAPE text] | attribute [NOT] MATCHES text | attribute IS [NOT] NULL
    attribute = name | payload "." name {"." name} | "$" name ["[" index "]"]      name = letters | quoted by "

Recursive descent over lexemes (Jakarta Messaging 3.1, section 3.8.1; ISO 9075 for the operators). An attribute alone is
`attribute = TRUE`. There is no arithmetic and no function: what a selector would compute, a publisher can send as a
header. Everything that is refused is refused with the byte at which it goes wrong.
The texts that most selectors have are read in C (quick_where.pyx); this is the definition.
"""

import math
import re
from dataclasses import dataclass

from matchcore.errors import InvalidFilter, InvalidSelector
from matchcore.grammar import parse_filter
from matchcore.quick_where import read_quickly
from matchcore.selector import (
    KEYWORDS,
    MESSAGE,
    OPERATORS,
    And,
    AtLeast,
    Attribute,
    Between,
    Compare,
    Constant,
    In,
    Like,
    Matches,
    Not,
    Or,
    Present,
    Selector,
    Source,
    Test,
    Value,
    leaves,
)

__all__ = ["MAX_DEPTH", "MAX_LEAVES", "MAX_TEXT_BYTES", "MAX_VALUES", "decoded", "parse_where"]

MAX_TEXT_BYTES = 4_096  # of a selector's text: a screen of conditions
MAX_LEAVES = 64         # tests in a selector
MAX_DEPTH = 16          # parentheses, NOT and AT LEAST inside each other
MAX_VALUES = 1_000      # in one IN
PAYLOAD_DEPTH = 8       # names in a path of the payload
INT64 = range(-(2**63), 2**63)

TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
          | (?P<text>'(?:[^']|'')*')
          | (?P<quoted>"(?:[^"]|"")+")
          | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
          | (?P<known>\$[a-z_]*)
          | (?P<mark><>|!=|<=|>=|[=<>(),.\[\]+*/-])
          | (?P<end>\Z)
          | (?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
SEND_IT = "a selector cannot compute: let the publisher send the value as a header"


@dataclass(frozen=True, slots=True)
class Lexeme:
    kind: str  # one of TOKEN's groups; "word" in capitals is a keyword where `text` is one
    text: str
    position: int  # of its first character in the text


def parse_where(text: str | bytes) -> Selector:
    """The selector of a text, at most 4 KiB of UTF-8. Raises InvalidSelector, with the byte offset and an advice."""
    quickly = read_quickly(text)
    return _Reading(text).whole() if quickly is None else quickly


def decoded(text: str | bytes) -> tuple[str, bytes]:
    """A text as characters and as its UTF-8, at most 4 KiB. Raises InvalidSelector."""
    encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    if len(encoded) > MAX_TEXT_BYTES:
        reason = f"the text has {len(encoded)} bytes, more than {MAX_TEXT_BYTES}"
        raise InvalidSelector(encoded, MAX_TEXT_BYTES, reason, "divide it among several subscriptions")
    try:
        return encoded.decode(), encoded
    except UnicodeDecodeError as error:
        raise InvalidSelector(encoded, error.start, "not UTF-8", "encode the text as UTF-8") from None


class _Reading:
    def __init__(self, text: str | bytes) -> None:
        self._text, self._encoded = decoded(text)
        self._depth = 0
        self._next = self._token(0)
        self._end = 0  # behind the token that was taken last

    def whole(self) -> Selector:
        selector = self._condition()
        if self._next.kind != "end":
            raise self._unexpected("AND, OR or the end")
        if (count := sum(1 for _ in leaves(selector))) > MAX_LEAVES:
            reason = f"{count} tests, more than {MAX_LEAVES}"
            raise self._invalid(0, reason, "use IN for several values, or several subscriptions")
        return selector

    # Lexemes

    def _token(self, start: int) -> Lexeme:
        found = TOKEN.match(self._text, start)
        assert found is not None  # `end` or `other` fits everywhere
        assert found.lastgroup is not None
        kind, text = found.lastgroup, found[found.lastgroup]
        at = found.start(kind)
        if kind == "other":
            if text in "'\"":
                raise self._invalid(at, f"the quotation mark {text} is not closed", f"close it by another {text}")
            raise self._invalid(at, f"{text!r} has no meaning here", "put text between '...', names between \"...\"")
        return Lexeme(kind, "<>" if text == "!=" else text, at)

    def _take(self) -> Lexeme:
        taken = self._next
        self._end = taken.position + len(taken.text)
        self._next = self._token(self._end)
        return taken

    def _is(self, *words: str) -> bool:
        """Whether the next token is one of these keywords or marks."""
        kind, text = self._next.kind, self._next.text
        return (kind == "word" and text.upper() in words) or (kind == "mark" and text in words)

    def _took(self, *words: str) -> bool:
        return self._is(*words) and bool(self._take())

    def _need(self, word: str) -> None:
        if not self._took(word):
            raise self._unexpected(word)

    def _invalid(self, at: int, reason: str, advice: str) -> InvalidSelector:
        return InvalidSelector(self._encoded, len(self._text[:at].encode()), reason, advice)

    def _unexpected(self, wanted: str) -> InvalidSelector:
        found = self._next
        if found.kind == "mark" and found.text in "+-*/":
            return self._invalid(found.position, f"arithmetic ({found.text})", SEND_IT)
        what = "the text ends" if found.kind == "end" else f"found {found.text!r}"
        return self._invalid(found.position, f"{wanted} is missing, {what}", f"write {wanted} here")

    # Conditions

    def _condition(self) -> Selector:
        parts = [self._all()]
        while self._took("OR"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self) -> Selector:
        parts = [self._one()]
        while self._took("AND"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Selector:
        if not self._is("NOT", "(", "AT"):
            return self._primary()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            reason = f"more than {MAX_DEPTH} conditions inside each other"
            raise self._invalid(self._next.position, reason, "write it with fewer parentheses")
        selector = self._nested()
        self._depth -= 1
        return selector

    def _nested(self) -> Selector:
        if self._took("NOT"):
            return Not(self._one())
        if self._took("("):
            selector = self._condition()
            self._need(")")
            return selector
        return self._at_least()

    def _at_least(self) -> Selector:
        self._need("AT")
        self._need("LEAST")
        position = self._next.position
        count = self._literal()
        self._need("OF")
        self._need("(")
        parts = [self._condition()]
        while self._took(","):
            parts.append(self._condition())
        self._need(")")
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(parts):
            raise self._invalid(position, f"AT LEAST {count} of {len(parts)}", f"give a number from 1 to {len(parts)}")
        return AtLeast(count, tuple(parts))

    def _primary(self) -> Selector:
        if self._next.kind in ("number", "text") or self._is("TRUE", "FALSE"):
            return self._literal_first()
        return self._test(self._attribute())

    def _literal_first(self) -> Selector:
        position = self._next.position
        value = self._literal()
        if not self._is(*OPERATORS):
            if isinstance(value, bool):
                return Constant(value)
            raise self._unexpected("an operator")
        operator = self._take().text
        if self._next.kind in ("number", "text") or self._is("TRUE", "FALSE"):
            raise self._invalid(position, "two values are compared", "compare an attribute with a value")
        return self._compare(self._attribute(), MIRRORED[operator], value, position)

    def _test(self, attribute: Attribute) -> Selector:
        if self._is(*OPERATORS):
            operator, position = self._take().text, self._next.position
            return self._compare(attribute, operator, self._literal(), position)
        if self._took("IS"):
            negated = self._took("NOT")
            self._need("NULL")
            return Present(attribute) if negated else Not(Present(attribute))
        negated = self._took("NOT")
        test: Test
        if self._took("BETWEEN"):
            test = self._between(attribute)
        elif self._took("IN"):
            test = self._in(attribute)
        elif self._took("LIKE"):
            test = self._like(attribute)
        elif self._took("MATCHES"):  # no keyword: an attribute may have this name
            test = self._matches(attribute)
        elif negated:
            raise self._unexpected("BETWEEN, IN, LIKE or MATCHES")
        elif self._is("+", "-", "*", "/") or self._next.kind == "number":
            raise self._invalid(self._next.position, "arithmetic", SEND_IT)
        elif self._is("("):
            raise self._invalid(self._next.position, "a function", SEND_IT)
        else:
            test = Compare(attribute, "=", True)
        return Not(test) if negated else test

    # Tests

    def _compare(self, attribute: Attribute, operator: str, value: Value, position: int) -> Test:
        if isinstance(value, bool) and operator not in ("=", "<>"):
            reason = f"TRUE and FALSE have no order, so {operator} cannot compare them"
            raise self._invalid(position, reason, "use = or <>")
        return Compare(attribute, operator, value)

    def _between(self, attribute: Attribute) -> Test:
        position = self._next.position
        low = self._literal()
        self._need("AND")
        high = self._literal()
        if isinstance(low, bool) or isinstance(high, bool) or isinstance(low, str) is not isinstance(high, str):
            raise self._invalid(position, "BETWEEN needs two numbers or two texts", "give both ends the same type")
        return Between(attribute, low, high)

    def _in(self, attribute: Attribute) -> Test:
        self._need("(")
        values = {self._keyed(value := self._literal()): value}
        while self._took(","):
            position = self._next.position
            values.setdefault(self._keyed(value := self._literal()), value)
            if len(values) > MAX_VALUES:
                raise self._invalid(position, f"more than {MAX_VALUES} values", "divide them among several IN")
        self._need(")")
        return In(attribute, tuple(values.values()))

    @staticmethod
    def _keyed(value: Value) -> tuple[bool, Value]:
        return isinstance(value, bool), value  # 1 and TRUE are equal in Python, 1 and 1.0 in a selector too

    def _like(self, attribute: Attribute) -> Test:
        position = self._next.position
        pattern = self._quoted_text()
        escape = None
        if self._took("ESCAPE"):
            position = self._next.position
            escape = self._quoted_text()
            if len(escape) != 1:
                raise self._invalid(position, f"{escape!r} is not one character", "give ESCAPE one character")
            plain = re.sub(f"{re.escape(escape)}[%_{re.escape(escape)}]", "", pattern)
            if escape in plain:
                reason = f"{escape!r} stands before neither % nor _ nor itself"
                raise self._invalid(position, reason, "double it to find it as it is")
        return Like(attribute, pattern, escape)

    def _matches(self, attribute: Attribute) -> Test:
        position = self._next.position
        test = Matches(attribute, self._quoted_text())
        try:
            parse_filter(test.filter, test.syntax)
        except InvalidFilter as error:
            before = error.text[: error.position].decode("utf-8", "ignore").replace("'", "''")
            raise self._invalid(position + 1 + len(before), f"the filter: {error.reason}", error.advice) from None
        return test

    def _quoted_text(self) -> str:
        if self._next.kind != "text":
            raise self._unexpected("text between '...'")
        value = self._literal()
        assert isinstance(value, str)
        return value

    def _literal(self) -> Value:
        if self._is("TRUE", "FALSE"):
            return self._take().text.upper() == "TRUE"
        token = self._next
        if token.kind == "text":
            return self._take().text[1:-1].replace("''", "'")
        if token.kind != "number":
            if token.kind in ("quoted", "known") or (token.kind == "word" and token.text.upper() not in KEYWORDS):
                raise self._invalid(token.position, "two attributes are compared", "put text between '...'")
            raise self._unexpected("a number, text between '...', TRUE or FALSE")
        self._take()
        if re.fullmatch(r"[+-]?\d+", token.text):
            if int(token.text) not in INT64:
                raise self._invalid(token.position, f"{token.text} has more than 64 bits", "write it as 1e20 is")
            return int(token.text)
        if not math.isfinite(number := float(token.text)):
            raise self._invalid(token.position, f"{token.text} is beyond what a float holds", "use a smaller number")
        return number

    # Attributes

    def _attribute(self) -> Attribute:
        token = self._next
        if token.kind == "known":
            return self._known()
        if token.kind == "word" and token.text == "payload":
            self._take()
            return Attribute(Source.PAYLOAD, self._path("payload"))
        return Attribute(Source.HEADER, (self._header(),))

    def _header(self) -> str:
        name = self._name()
        while self._is(".") and self._next.position == self._end:
            self._take()
            name = f"{name}.{self._name()}"
        return name

    def _path(self, whose: str) -> tuple[str, ...]:
        position = self._next.position
        names: list[str] = []
        while self._took("."):
            names.append(self._name())
        if not names:
            raise self._invalid(position, f"{whose} alone", f'name a field: {whose}.price; a header is "{whose}"')
        if len(names) > PAYLOAD_DEPTH:
            raise self._invalid(position, f"a path of {len(names)} names", f"use {PAYLOAD_DEPTH} at most")
        return tuple(names)

    def _name(self) -> str:
        if self._next.kind == "quoted":
            return self._take().text[1:-1].replace('""', '"')
        if self._next.kind != "word" or self._next.text.upper() in KEYWORDS:
            raise self._unexpected("the name of an attribute")
        return self._take().text

    def _known(self) -> Attribute:
        token = self._take()
        name = token.text[1:]
        if name == "word":
            self._need("[")
            position = self._next.position
            index = self._literal()
            self._need("]")
            if isinstance(index, bool) or not isinstance(index, int) or not 1 <= index <= 128:
                raise self._invalid(position, f"$word[{index}]", "words are counted from 1 to 128")
            return Attribute(Source.MESSAGE, ("word", str(index)))
        if name not in MESSAGE:
            known = ", ".join(f"${each}" for each in ("word[1]", *MESSAGE))
            raise self._invalid(token.position, f"${name} is not known", f"use one of {known}")
        return Attribute(Source.MESSAGE, (name,))
