"""Topics as the broker sees them: sequences of words, in a syntax, with four reserved names.

The grammar is matchcore's. Here is what a broker adds: the numbers of the syntaxes on the wire, the names that only
the broker may publish under or that wildcards must not see, and the spelling of one syntax's topic in another's
(docs/topics.md; both read docs/topics-vectors.json).
"""

from hashlib import blake2b
from typing import Final

import matchcore
from fanlight_broker.core.errors import InvalidFilter, InvalidTopic, NotPermitted, Unsupported
from fanlight_broker.core.limits import TOPIC_WORDS_CEILING, Limits
from fanlight_permissions.topics import ANY_WORDS as ANY_WORDS  # these are also the words of the rules
from fanlight_permissions.topics import BROKER_ROOT as BROKER_ROOT
from fanlight_permissions.topics import INBOX_ROOT as INBOX_ROOT
from fanlight_permissions.topics import NAMESPACE_ROOT as NAMESPACE_ROOT
from fanlight_permissions.topics import OWN_ROOTS as OWN_ROOTS
from fanlight_permissions.topics import RESERVED as RESERVED
from fanlight_permissions.topics import SEPARATORS as SEPARATORS
from fanlight_permissions.topics import SYNTAXES as SYNTAXES
from fanlight_permissions.topics import first_word as first_word
from fanlight_permissions.topics import namespace_prefix as namespace_prefix
from fanlight_permissions.topics import text_of

CANONICAL: Final = SYNTAXES.index("mqtt")  # whose topics are keys as they are: `canonical`
WILDCARDS_HIDE: Final = (False, True)  # is what begins with $ kept from filters that begin with a wildcard? `hidden`

BROKER_SYNTAX: Final = SYNTAXES.index("mqtt")  # in which it spells them, as others do who have such topics
MQTT_TOPIC_BYTES_MAX: Final = 65_535  # MQTT 5, 1.5.4

_MQTT_ESCAPES: Final = {octet: b"%%%02X" % octet for octet in b"%/+#\0"}

Canonical = bytes | tuple[int, bytes]


class Unspellable(ValueError):
    """A topic that another syntax cannot represent; the message is counted and not delivered there."""


def syntax_of(number: int | None) -> str:
    """The syntax with this number on the wire (0 if None). Raises Unsupported."""
    if number is None:
        return SYNTAXES[0]
    if 0 <= number < len(SYNTAXES):
        return SYNTAXES[number]
    known = ", ".join(f"{i} ({name})" for i, name in enumerate(SYNTAXES))
    raise Unsupported(f"syntax {number}; this broker knows {known}", syntax=number)


def words_of(topic: bytes, syntax: str, limits: Limits) -> tuple[bytes, ...]:
    """The words of a topic name. Raises InvalidTopic with the position of what is wrong."""
    try:
        return matchcore.split_topic(
            topic, syntax, max_words=limits.topic_words_max, max_bytes=limits.topic_bytes_max
        )
    except matchcore.InvalidTopic as error:
        raise invalid_topic(error) from error


def check_topic(topic: bytes, syntax: str, limits: Limits) -> None:
    """Raises InvalidTopic if a topic exceeds the limits; the matcher checks the rest."""
    if beyond(topic, syntax, limits):
        words_of(topic, syntax, limits)


def check_filter(text: bytes, syntax: str, limits: Limits) -> None:
    """Raises InvalidFilter if a filter exceeds the limits; the matcher checks the rest."""
    if beyond(text, syntax, limits):
        parse_filter(text, syntax, limits)


def parse_filter(text: bytes, syntax: str, limits: Limits) -> None:
    """Raises InvalidFilter for all that can be wrong with a filter."""
    try:
        matchcore.parse_filter(text, syntax, max_words=limits.topic_words_max, max_bytes=limits.topic_bytes_max)
    except matchcore.InvalidFilter as error:
        raise invalid_filter(error) from error


def named_filter(text: str) -> tuple[bytes, str]:
    """(filter, syntax) of a filter in a setting: in the first syntax, or in the one that is named before a colon."""
    for syntax in SYNTAXES[1:]:
        if text.startswith(f"{syntax}:"):
            return text.removeprefix(f"{syntax}:").encode(), syntax
    return text.encode(), SYNTAXES[0]


def beyond(text: bytes, syntax: str, limits: Limits) -> bool:
    if len(text) > limits.topic_bytes_max:
        return True
    # n words take at least n - 1 octets.
    return len(text) >= limits.topic_words_max - 1 and text.count(SEPARATORS[syntax]) >= limits.topic_words_max


def invalid_topic(error: matchcore.InvalidTopic) -> InvalidTopic:
    """The matcher's error as the broker's."""
    return InvalidTopic(text_of(error), position=error.position)


def invalid_filter(error: matchcore.InvalidFilter) -> InvalidFilter:
    """The matcher's error as the broker's."""
    return InvalidFilter(text_of(error), position=error.position)


def reserved(topic: bytes, syntax: str) -> bool:
    """Do only filters with its very first word see this topic?"""
    return topic.startswith(b"$") and first_word(topic, syntax) in RESERVED


def check_publisher(topic: bytes) -> None:
    """Raises NotPermitted for the broker's own topics, and for those that look like one in the other syntax."""
    for root in OWN_ROOTS:
        if topic.startswith(root) and topic[len(root) :][:1] in (b"", *SEPARATORS.values()):
            raise NotPermitted(
                f"topics whose first word is {root.decode()} are the broker's own; publish under another name"
            )


def why_not_made(topic: bytes, syntax: str, limits: Limits) -> str:
    """Why a rule may not send messages to a topic that it has made of words of another; "" if it may."""
    if topic.startswith(b"$"):
        return "the topic would begin with $"
    if syntax == "mqtt" and not 0 < len(topic) <= MQTT_TOPIC_BYTES_MAX:
        return f"the topic would have {len(topic)} bytes; MQTT has 1 to {MQTT_TOPIC_BYTES_MAX}"
    try:
        words_of(topic, syntax, limits)
    except InvalidTopic as error:
        return error.text
    return ""


def check_inbox(filter: bytes, syntax: str, inbox: str) -> None:
    """Raises NotPermitted for a filter that sees replies to others: `inbox` is the client's, in `.` spelling."""
    if first_word(filter, syntax) == INBOX_ROOT and not is_inbox(filter, syntax, inbox):
        raise NotPermitted(
            "filters under $inbox see replies, which are private: a client may subscribe below the inbox that it "
            "was given when it connected, and nowhere else under $inbox"
        )


def is_inbox(filter: bytes, syntax: str, inbox: str) -> bool:
    """Is a filter below this inbox?"""
    words = filter.split(SEPARATORS[syntax], 2)
    return words[0] == INBOX_ROOT and len(words) > 1 and words[1] == inbox.encode().partition(b".")[2]


def masked(text: bytes, syntax: str) -> bytes:
    """A topic or filter as other users may see it: the random word of an inbox would let them publish there."""
    separator = SEPARATORS[syntax]
    words = text.split(separator, 2) if text.startswith(INBOX_ROOT) else []
    if len(words) < 2 or words[0] != INBOX_ROOT:
        return text
    words[1] = b"masked-" + blake2b(words[1], digest_size=8).hexdigest().encode()  # the same for the same inbox
    return separator.join(words)


def sees_reserved(filter: bytes, filter_syntax: str, topic: bytes, syntax: str) -> bool:
    """Does a filter begin with the first word of a reserved topic? (That is no wildcard: it begins with `$`.)"""
    return first_word(filter, filter_syntax) == first_word(topic, syntax)


def matches_everything(filter: bytes) -> bool:
    """Does a filter match every topic, except those hidden from it by a rule?"""
    return filter == b"#"


def hidden(topic: bytes, filter_syntax: str) -> bool:
    """Is a topic kept from a filter that begins with a wildcard, by the filter's syntax? (MQTT 5, 4.7.2)"""
    return filter_syntax == "mqtt" and topic.startswith(b"$")


def hashes_of(filter: bytes, syntax: str) -> int:
    """The number of its words that are `#`."""
    found = filter.count(b"#")
    return found if found < 2 else filter.split(SEPARATORS[syntax]).count(b"#")


def canonical(topic: bytes, syntax: int) -> Canonical:
    """A key that is the same for the same words, whichever syntax (by its number) they are spelled in."""
    if syntax == CANONICAL:
        return topic
    if b"/" in topic or not topic:
        return syntax, topic  # no topic in the other syntax has these words
    return topic.replace(b".", b"/")


def respell(topic: bytes, from_syntax: str, to_syntax: str) -> bytes:
    """Write a topic in another syntax, the words unambiguous and the bytes unchanged where they can be.

    Raises Unspellable; only towards "mqtt" does it need to (and is it needed: native subscribers get a topic as it is).
    """
    if from_syntax == to_syntax:
        return topic
    words = matchcore.split_topic(topic, from_syntax, max_words=TOPIC_WORDS_CEILING)  # checked when it was published
    if to_syntax != "mqtt":
        raise Unspellable(f"there is no spelling of {from_syntax} topics in {to_syntax}")
    if not words:
        raise Unspellable("a topic of no words has no spelling in MQTT")
    try:
        topic.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unspellable(f"byte {error.start} is not valid UTF-8, which MQTT requires") from error
    spelled = b"/".join(b"".join(_MQTT_ESCAPES.get(octet) or bytes((octet,)) for octet in word) for word in words)
    if not spelled:
        raise Unspellable("a topic of one empty word has no spelling in MQTT")
    if len(spelled) > MQTT_TOPIC_BYTES_MAX:
        raise Unspellable(f"{len(spelled)} bytes in MQTT spelling; it allows {MQTT_TOPIC_BYTES_MAX}")
    return spelled
