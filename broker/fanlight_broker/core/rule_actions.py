"""A routing rule: which messages it acts on, and what it does with them. rule_file.py reads them.

    copy      another message like it, to a topic made of the words of its own        to = "stock.$2.$1"
    replace   it goes to that topic, and no longer to its own                         replace = "stock.$0"
    set       a header is set, in place of those of the same name                     set = { region = "eu" }
    priority  the header `priority` is set, which named queues with priorities read   priority = 7
    drop      it goes nowhere                                                         drop = true
    archive   it is archived, whatever `archive_topics` says                          archive = true
    delay     it is kept until so much later                                          delay = "30s"
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fanlight_broker.core.rules import HeaderValue
from fanlight_broker.core.topics import ANY_WORDS, SEPARATORS, SYNTAXES
from matchcore.selector import Selector

ANY_TOPIC: Final = b"#"
ALL_WORDS: Final = 0  # the word `$0` of a template: all of them


class ActionKind(StrEnum):
    COPY = "to"
    REPLACE = "replace"
    SET = "set"
    PRIORITY = "priority"
    DROP = "drop"
    ARCHIVE = "archive"
    DELAY = "delay"


ENDING: Final = frozenset({ActionKind.REPLACE, ActionKind.DROP})  # less salient rules do not act on the message there
REWRITING: Final = frozenset({ActionKind.COPY, ActionKind.REPLACE})


class TopicTemplate:
    """A topic with words of another: `$1` its first word, `$0` all of its words. Raises ValueError.

    text    in the native syntax, or in MQTT's
    syntax  of it; the topic that is made has the syntax of the message's own
    """

    def __init__(self, text: bytes, syntax: str) -> None:
        self.text = text
        if not text:
            raise ValueError("the topic has no words")
        self.parts = [_part(word) for word in text.split(SEPARATORS[syntax])]
        first = self.parts[0]
        if isinstance(first, bytes) and first.startswith(b"$"):
            raise ValueError("a topic whose first word begins with $ is not for rules")
        self.words_least = max((part for part in self.parts if isinstance(part, int)), default=0)

    def made_of(self, words: tuple[bytes, ...], syntax: str) -> bytes | None:
        """The topic for a message whose topic has these words; None if it has too few."""
        if len(words) < self.words_least:
            return None
        made: list[bytes] = []
        for part in self.parts:
            if isinstance(part, bytes):
                made.append(part)
            elif part == ALL_WORDS:
                made += words
            else:
                made.append(words[part - 1])
        return SEPARATORS[syntax].join(made)

    def __str__(self) -> str:
        return self.text.decode()


def _part(word: bytes) -> bytes | int:
    if word.startswith(b"$") and word[1:].isdigit():
        number = int(word[1:5])
        if len(word) > 4 or number > 255:
            raise ValueError(f"{word.decode()}: a topic does not have that many words; at most $255")
        return number
    if b"$" in word:
        raise ValueError(f"{word.decode(errors='replace')!r}: $1 stands for a whole word, and a word has no other $")
    if any(octet in word for octet in b"#\0" + ANY_WORDS):
        raise ValueError(f"{word.decode(errors='replace')!r} is a wildcard, and this is the topic of one message")
    if any(separator in word for separator in SEPARATORS.values()):
        raise ValueError(f"{word.decode(errors='replace')!r}: a word must not have the separator of the other syntax")
    return word


@dataclass(frozen=True, slots=True, eq=False)
class RoutingRule:
    """place: where it is in its file, for people. number: in the order of the file, from 0."""

    number: int
    place: str
    name: str | None
    filter: bytes
    syntax: str
    selector: Selector
    salience: int | float
    kind: ActionKind
    template: TopicTemplate | None = None
    headers: tuple[tuple[str, HeaderValue], ...] = ()
    seconds: float = 0.0

    @property
    def label(self) -> str:
        """Its name, or its number from 1."""
        return self.name if self.name is not None else f"rule {self.number + 1}"

    @property
    def order(self) -> tuple[int | float, int]:
        return self.salience, self.number

    @property
    def ends(self) -> bool:
        return self.kind in ENDING

    def __str__(self) -> str:
        return f"{self.label} ({self.place}, salience {self.salience:g})"

    @property
    def action(self) -> str:
        """What it does, in words."""
        match self.kind:
            case ActionKind.COPY:
                return f"copies it to {self.template}"
            case ActionKind.REPLACE:
                return f"sends it to {self.template} instead"
            case ActionKind.DROP:
                return "drops it"
            case ActionKind.ARCHIVE:
                return "archives it"
            case ActionKind.DELAY:
                return f"delays it by {self.seconds:g} s"
            case _:
                return "sets " + ", ".join(f"{name} = {value!r}" for name, value in self.headers)

    def output_filter(self) -> bytes:
        """A filter, in its syntax, of all topics that it sends messages to: a word of the topic is any word, unless the
        filter says which it is.
        """
        assert self.template is not None
        separator, any_word = SEPARATORS[self.syntax], ANY_WORDS[SYNTAXES.index(self.syntax) :][:1]
        own = self.filter.split(separator) if self.filter else []
        fixed = own[: own.index(ANY_TOPIC)] if ANY_TOPIC in own else own
        words: list[bytes] = []
        for part in self.template.parts:
            if isinstance(part, bytes):
                words.append(part)
            elif part == ALL_WORDS:
                words += own
            else:
                words.append(fixed[part - 1] if part <= len(fixed) else any_word)
        return separator.join(words)
