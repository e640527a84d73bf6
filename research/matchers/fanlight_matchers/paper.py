"""The example on paper: seven subscriptions, in the tables of the papers and in our three tiers, drawn.

The subscriptions and topics are those of the papers' story as Treat's tests have it (github.com/tylertreat/
fast-topic-matching, inverted_bitmap_test.go). The two published tables are drawn from their definitions; ours
from the rows in the memory of a FilterIndex (drawing.pyx), so that the document cannot show what the code does not.
"""

from collections.abc import Iterable

from fanlight_matchers.drawing import class_rows, pool_rows
from matchcore import FilterIndex, explain
from matchcore.reference import matches

FILTERS = ["forex.*", "*.usd", "forex.eur", "*.eur", "forex.*", "trade", "*"]
SUBSCRIBERS = ["s0", "s0", "s0", "s1", "s1", "s1", "s2"]
TOPICS = ["forex", "forex.gbp", "forex.eur", "forex.usd", "forex.jpy", "trade", "trade.usd", "trade.jpy"]
ASKED = "forex.eur"

Lines = list[str]
Rows = list[tuple[str, bytes | None, set[int]]]


def index(buckets: bool = False) -> FilterIndex:
    """The seven, their ids being their places; in the buckets where seven would be in the pool."""
    made = FilterIndex()
    if buckets:
        made._tune(small=0)
    for id, text in enumerate(FILTERS):
        made.insert(text, id)
    return made


def blocks() -> dict[str, Lines]:
    """Everything drawn, by the name it has in the document."""
    return {
        "paper-subscriptions": subscriptions(), "paper-static": static(), "paper-optimised": optimised(),
        "paper-exact": exact(), "paper-pool": pool(), "paper-classes": classes(),
    }  # fmt: skip


def subscriptions() -> Lines:
    rows = [f"{id}  {text:<12}{who}" for id, (text, who) in enumerate(zip(FILTERS, SUBSCRIBERS, strict=True))]
    return _fenced(rows)


def static() -> Lines:
    """A row for each known topic, a bit for each subscription that matches it."""
    everything = range(len(FILTERS))
    found = [{id for id in everything if matches(FILTERS[id], "amqp", topic, "amqp")} for topic in TOPICS]
    rows = [("topic", [str(id) for id in everything])]
    rows += [(topic, _marks(ids, len(FILTERS))) for topic, ids in zip(TOPICS, found, strict=True)]
    return _fenced(_drawn(rows, asked=[ASKED]))


def optimised() -> Lines:
    """A table for each position: a row for each word, one for every other word, one for topics that end before."""
    split = [text.split(".") for text in FILTERS]
    rows = [("", [str(id) for id in range(len(FILTERS))])]
    used = []
    alive = set(range(len(FILTERS)))
    words_asked = ASKED.split(".")
    for place in range(max(map(len, split))):
        words = sorted({words[place] for words in split if len(words) > place} - {"*"})
        wild = {id for id, words in enumerate(split) if words[place : place + 1] == ["*"]}
        for word in words:
            has = wild | {id for id, words in enumerate(split) if words[place : place + 1] == [word]}
            label = f"table {place + 1} {word}"
            rows.append((label, _marks(has, len(FILTERS))))
            if words_asked[place] == word:
                used.append(label)
                alive &= has
        rows.append((f"        other {place + 1}", _marks(wild, len(FILTERS))))
        ends = {id for id, words in enumerate(split) if len(words) <= place}
        if ends:
            rows.append((f"        null {place + 1}", _marks(ends, len(FILTERS))))
    rows.append((f"and     {ASKED}", _marks(alive, len(FILTERS))))
    return _fenced(_drawn(rows, asked=used))


def exact() -> Lines:
    """Those without a wildcard, by the hash of the whole text."""
    held = {text: [id for id, other in enumerate(FILTERS) if other == text] for text in FILTERS}
    explained = [one for one in explain(index(), ASKED) if one.tier == "exact"]
    literal = [text for text in held if not {"*", "#"} & set(text.split("."))]
    lines = [
        f"hash of {text:<10} ->  {text:<10} ids {', '.join(map(str, held[text]))}"
        + ("   <" if text in [one.filter for one in explained] else "")
        for text in literal
    ]
    return _fenced(lines)


def pool() -> Lines:
    """A column for each filter with a wildcard; the rows of memory, and the and that the topic asked for makes."""
    seven = index()
    columns, rows = pool_rows(seven)
    return _fenced([*_matrix([str(text) for text in columns], rows), "", *_anded(seven, rows, len(columns))])


def classes() -> Lines:
    """A column for each set of key places; then the keys that the topic makes, and the buckets under them."""
    seven = index(buckets=True)
    keys, rows = class_rows(seven)
    names = [f"{{{', '.join(key)}}}" for key in keys]
    lines = [*_matrix(names, rows), "", *_anded(seven, rows, len(keys)), ""]
    explained = {str(one.filter): one for topic in TOPICS for one in explain(seven, topic) if one.tier == "buckets"}
    asked = {one.filter for one in explain(seven, ASKED)}
    drawn = []
    for text, one in explained.items():
        places = [row for row in one.rows if row.kind.startswith("key ")]
        at = names.index(f"{{{', '.join(f'{row.kind[4:]} {row.position}' for row in places)}}}")
        key = ", ".join((row.word or b"").decode() for row in places)
        ids = ", ".join(str(id) for id, other in enumerate(FILTERS) if other == text)
        bucket = f"class {at}, key {{{key}}}".ljust(22) + f"->  [ {text:<8} ids {ids} ]".ljust(28)
        drawn.append(bucket + ("<" if text in asked else ""))
    lines += sorted(drawn)
    return _fenced([line.rstrip() for line in lines])


def _matrix(columns: list[str], rows: Rows) -> Lines:
    """The rows, the first of each place with its name, and beside them what the columns are."""
    drawn = [("", [str(i) for i in range(len(columns))])]
    words = ASKED.encode().split(b".")
    used = []
    last = ""
    for place, word, has in rows:
        shown = place if place != last else ""
        label = f"{shown:<8} {'' if place.startswith('length') else 'free' if word is None else word.decode()}".rstrip()
        label = f"{label:<18}"
        drawn.append((label, _marks(has, len(columns))))
        if _asks(words, place, word):
            used.append(len(drawn) - 1)
        last = place
    lines = _drawn(drawn)
    marked = [f"{line}{'  <' if i in used else ''}" for i, line in enumerate(lines)]
    width = max(map(len, marked)) + 4
    beside = [f"{i}  {name}" for i, name in enumerate(columns)]
    return [
        f"{line:<{width}}{beside[i] if i < len(beside) else ''}".rstrip()
        for i, line in enumerate(marked + [""] * (len(beside) - len(marked)))
    ]


def _asks(words: list[bytes], place: str, word: bytes | None) -> bool:
    """Whether a topic of these words reads that row."""
    kind, _, number = place.partition(" ")
    if kind == "length":
        return int(number) == len(words)
    if kind not in ("left", "right") or int(number) >= len(words):
        return False
    at = int(number) if kind == "left" else len(words) - 1 - int(number)
    return word is None or word == words[at]


def _anded(seven: FilterIndex, rows: Rows, columns: int) -> Lines:
    """For each place the or of the rows it reads; and all of them anded."""
    words = ASKED.encode().split(b".")
    places: dict[str, set[int]] = {}
    read: dict[str, list[str]] = {}
    for place, word, has in rows:
        if _asks(words, place, word):
            places[place] = places.get(place, set()) | has
            read.setdefault(place, []).append("free" if word is None else word.decode())
    drawn = [
        (f"{place:<8} {'' if place.startswith('length') else '|'.join(read[place])}".ljust(20), _marks(has, columns))
        for place, has in places.items()
    ]
    alive = set(range(columns)).intersection(*places.values())
    return [*_drawn([*drawn, ("and".ljust(20), _marks(alive, columns))])]


def _marks(has: Iterable[int], columns: int) -> list[str]:
    held = set(has)
    return ["1" if i in held else "." for i in range(columns)]


def _drawn(rows: list[tuple[str, list[str]]], asked: Iterable[str] = ()) -> Lines:
    width = max(len(label) for label, _ in rows) + 2
    return [
        f"{label:<{width}}{'  '.join(cells)}{'  <' if label in set(asked) else ''}".rstrip() for label, cells in rows
    ]


def _fenced(lines: Lines) -> Lines:
    return ["```text", *lines, "```"]
