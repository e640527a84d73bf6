"""`make fuzz`: atheris, guided by coverage, into the decoders of frames and packets, the topic grammar and selectors.

    python -m tests.fuzz TARGET SECONDS CORPUS

TARGET: native, mqtt_packets, mqtt_selectors, topics or selectors.

What is found to be interesting is kept in the folder CORPUS, so that a later run starts from it; an input that
breaks something is written to the working directory, and the exit code is not 0.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

INSTRUMENTED = ["fanlight_broker", "matchcore.reference", "matchcore.where", "matchcore.suffix"]
with atheris.instrument_imports(include=INSTRUMENTED):
    from tests.broker.protocols.mqtt.corpus import CORPUS
    from tests.fuzz import mqtt_packets, mqtt_selectors, native, selectors, topics

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PIECES = (1, 2, 3, 7, 64, 100_000)
VERSIONS = (*mqtt_packets.Version, None)


def fuzz_native(data: bytes) -> None:
    """The first byte says how the rest is sent: behind a HELLO or not, in pieces of which size."""
    if data:
        native.try_octets(data[1:], piece=PIECES[(data[0] >> 1) % len(PIECES)], greet=bool(data[0] & 1))


def fuzz_topics(data: bytes) -> None:
    """The first byte chooses the syntaxes and where the rest is cut into filter and topic."""
    if data:
        cut = 1 + (data[0] >> 2) % len(data)
        filter_syntax, topic_syntax = topics.SYNTAXES[data[0] & 1], topics.SYNTAXES[data[0] >> 1 & 1]
        topics.try_texts(data[1:cut], filter_syntax, data[cut:], topic_syntax)


def fuzz_mqtt_packets(data: bytes) -> None:
    """The first byte says in which version the rest is read, and in pieces of which size."""
    if data:
        version, piece = VERSIONS[data[0] % len(VERSIONS)], PIECES[(data[0] >> 2) % len(PIECES)]
        mqtt_packets.try_octets(data[1:], version=version, piece=piece)


def fuzz_selectors(data: bytes) -> None:
    """The first byte says whether the rest is a selector or the suffix of a filter."""
    if data:
        (selectors.try_suffix if data[0] & 1 else selectors.try_octets)(data[1:])


# Real inputs to begin with: from the vectors of the documentation, and of the tests.


def native_seeds() -> list[bytes]:
    vectors = json.loads((DOCS / "native-protocol-vectors.json").read_text(encoding="utf-8"))
    frames = [bytes.fromhex(vector["bytes"]) for vector in vectors["frames"]]
    return [bytes((1 | piece << 1,)) + frame for frame in frames for piece in (0, 5)]


def topic_seeds() -> list[bytes]:
    vectors = json.loads((DOCS / "topics-vectors.json").read_text(encoding="utf-8"))
    texts = [(row[0], row[2]) for row in vectors["match"]]
    pairs = [(first.encode(), second.encode()) for first, second in texts if {type(first), type(second)} == {str}]
    return [bytes((len(first) << 2 & 0xFC,)) + first + second for first, second in pairs]


def mqtt_packet_seeds() -> list[bytes]:
    return [bytes((VERSIONS.index(entry.version),)) + entry.octets for entry in CORPUS]


def selector_seeds() -> list[bytes]:
    return [b"\0" + text for text in selectors.TEXTS] + [b"\1" + text for text in selectors.SUFFIXES]


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "native": (fuzz_native, native_seeds),
    "selectors": (fuzz_selectors, selector_seeds),
    "topics": (fuzz_topics, topic_seeds),
    "mqtt_packets": (fuzz_mqtt_packets, mqtt_packet_seeds),
    "mqtt_selectors": (mqtt_selectors.try_octets, mqtt_selectors.seeds),
}


def main() -> None:
    """Fuzz until the time is over; does not return."""
    target, seconds, corpus = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    function, seeds = TARGETS[target]
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds():
        (corpus / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    options = [f"-max_total_time={seconds}", "-max_len=2048", "-timeout=10", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", str(corpus)], function)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
