"""Topics and filters of a scenario: made from templates, spelled for each protocol, and who gets what.

Templates are spelt once, the MQTT way: `/` between levels, `+` for one level, `#` at the end for the rest. In them

    {i}             is the index of the topic or subscriber
    {i/10} {i%10}   and {i/10%7}: arithmetic on it, from left to right
    {n}             in a topic: the message's number in ten digits, so that each topic is used once

Who gets what needs no matcher. Wildcards stand in the template, so all filters of one template have them at the same
places, and exactly one spelling of these places can match a given topic: a look-up finds who has it. So a
million filters are a pass over a million strings, and nothing of the broker's own matching is trusted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

DIGITS = 10  # of {n}
ZEROS = "0" * DIGITS

_INDEX = re.compile(r"\{i((?:[/%]\d+)*)\}")
_ANYTHING = re.compile(r"\{[^}]*\}?")


class BadTemplate(ValueError):
    """A topic or filter template that does not follow the rules above."""


def check(template: str, *, topic: bool) -> None:
    """Raises BadTemplate when it is not a template of a topic, or of a filter."""
    rest = _INDEX.sub("0", template)
    if topic and rest.count("{n}") <= 1:
        rest = rest.replace("{n}", "0")
    _check_places(template, rest)
    levels = rest.split("/")
    for number, level in enumerate(levels):
        if not level or re.search(r"[\s.*>]", level):
            raise BadTemplate(f"{template!r}: empty levels, spaces and . * > are not in all protocols' topics")
        if topic and re.search(r"[+#]", level):
            raise BadTemplate(f"{template!r}: a topic has no wildcards")
        if len(level) > 1 and re.search(r"[+#]", level):
            raise BadTemplate(f"{template!r}: a wildcard is a whole level")
        if level == "#" and number < len(levels) - 1:
            raise BadTemplate(f"{template!r}: # is the last level")


def check_text(template: str) -> None:
    """Raises BadTemplate when the index is not written in it as the rules above say: of a header, or a selector."""
    _check_places(template, _INDEX.sub("0", template))


def _check_places(template: str, rest: str) -> None:
    if found := _ANYTHING.search(rest):
        raise BadTemplate(f"{template!r}: {found[0]} is not understood; {{i}}, {{i/10}}, {{i%10}} are")
    for divisor in re.findall(r"[/%](\d+)", "".join(_INDEX.findall(template))):
        if int(divisor) == 0:
            raise BadTemplate(f"{template!r}: division by zero")


def expand(template: str, index: int) -> str:
    """The template for an index; {n} becomes ten zeros."""
    return Expander(template)(index)


class Expander:
    """`expand` for many indices of one template."""

    def __init__(self, template: str) -> None:
        self._parts: list[str] = []
        self._steps: list[list[tuple[str, int]]] = []
        at = 0
        for match in _INDEX.finditer(template):
            self._parts.append(template[at : match.start()].replace("{n}", ZEROS))
            self._steps.append([(step[0], int(step[1:])) for step in re.findall(r"[/%]\d+", match[1])])
            at = match.end()
        self._last = template[at:].replace("{n}", ZEROS)

    def __call__(self, index: int) -> str:
        made = ""
        for part, steps in zip(self._parts, self._steps, strict=True):
            number = index
            for operator, operand in steps:
                number = number // operand if operator == "/" else number % operand
            made += part + str(number)
        return made + self._last


def spelled(text: str, protocol: str, syntax: str) -> str:
    """A topic or filter as a protocol writes it; syntax is the native one's, "amqp" or "mqtt"."""
    if protocol == "nats":
        return text.replace("/", ".").replace("+", "*").replace("#", ">")
    if protocol == "fanlight" and syntax == "amqp":
        return text.replace("/", ".").replace("+", "*")
    return text


class Audience:
    """Which filters of a set of templates match each topic.

    topics: without {n}, that is, with its ten zeros. parent: whether `a/#` matches `a`; it does in MQTT and in the
    native protocol, not in NATS.
    """

    def __init__(self, topics: Sequence[str], templates: Iterable[str], *, parent: bool = True) -> None:
        self._wanted: dict[str, list[int]] = {}
        # Templates with their wildcards at the same places ask the same: once is enough.
        plain = (_INDEX.sub("", template) for template in templates)  # without the / of {i/10}
        shapes = dict.fromkeys(tuple(_wildcard(level) for level in template.split("/")) for template in plain)
        for shape in shapes:
            for number, topic in enumerate(topics):
                matching = _only_match(shape, topic.split("/"), parent)
                if matching is not None:
                    self._wanted.setdefault(matching, []).append(number)

    def topics(self, pattern: str) -> Sequence[int]:
        """The numbers of the topics that a filter of one of the templates matches."""
        return self._wanted.get(pattern, ())


def _only_match(shape: Sequence[str], topic: Sequence[str], parent: bool) -> str | None:
    """The filter that matches a topic and has wildcards where `shape` has them, or None."""
    if shape[-1] == "#":
        literal = len(shape) - 1
        if len(topic) < literal + (0 if parent else 1):
            return None
        return "/".join([_level(*pair) for pair in zip(shape[:-1], topic, strict=False)] + ["#"])
    if len(shape) != len(topic):
        return None
    return "/".join(_level(*pair) for pair in zip(shape, topic, strict=True))


def _wildcard(level: str) -> str:
    return level if level in ("+", "#") else ""


def _level(shape: str, level: str) -> str:
    return shape or level


def filters(templates: Sequence[str], count: int) -> Iterator[str]:
    """The filters of `count` subscribers: number j has template j % n with index j // n, of n templates."""
    made = [Expander(template) for template in templates]
    for number in range(count):
        yield made[number % len(made)](number // len(made))
