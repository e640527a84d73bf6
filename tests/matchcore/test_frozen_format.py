"""docs/frozen-format.md is enough to read a frozen index: this is a reader made of that page alone."""

import struct

from matchcore import Deciding, explain, freeze
from tests.matchcore.test_frozen import TOPICS, of_all_kinds

M64 = (1 << 64) - 1
WORDS, LONG_WORDS, WORD_TABLE, CLASSES = 0, 1, 2, 3
LINES, BUCKETS, SLOTS, IDS, LISTS, IDS_OF_LISTS, TEXTS, EXACT_TABLE = 8, 9, 10, 11, 12, 13, 14, 15


def fold(a: int, b: int) -> int:
    product = (a & M64) * (b & M64)
    return (product & M64) ^ (product >> 64)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        assert data[:8] == b"mcfrozen"
        assert struct.unpack_from("<II", data, 8) == (2, 0x01020304)
        (self.size, self.checksum, self.version, self.pairs) = struct.unpack_from("<4Q", data, 16)
        self.secret = struct.unpack_from("<4Q", data, 96)
        self.multipliers = struct.unpack_from("<64Q", data, 128)
        self.sections = [struct.unpack_from("<QQ", data, 640 + 16 * i) for i in range(22)]

    def units(self, section: int, at: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{count}I", self.data, self.sections[section][0] + 4 * at)

    def load(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self.data, at)[0])

    def checked(self) -> int:
        even, odd = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
        for p in range(32, self.size, 32):
            even = fold(self.load(p) ^ 0xA0761D6478BD642F, self.load(p + 8) ^ even)
            odd = fold(self.load(p + 16) ^ 0xE7037ED1A0B428DB, self.load(p + 24) ^ odd)
        return fold(even ^ 0x8EBC6AF09C88C6E3, odd ^ (self.size - 32))

    def hash_word(self, word: bytes) -> int:
        secret, size = self.secret, len(word)
        if size <= 16:
            low, high = struct.unpack("<QQ", word.ljust(16, b"\0"))
            return fold(low ^ secret[1], high ^ secret[2] ^ size)
        state, p = secret[0] ^ size, 0
        while p < size - 16:
            low, high = struct.unpack_from("<QQ", word, p)
            state = fold(low ^ secret[1], high ^ state)
            p += 16
        low, high = struct.unpack_from("<QQ", word, size - 16)
        return fold(low ^ secret[2], high ^ state)

    def hash_text(self, text: bytes, separator: bytes) -> int:
        secret, size = self.secret, len(text)
        now, then = secret[0] ^ size, secret[3]
        zeros = text.replace(separator, b"\0").ljust(16, b"\0")
        for p in range(0, size, 16):
            low, high = struct.unpack_from("<QQ", zeros, min(p, len(zeros) - 16))
            now, then = then, fold(low ^ secret[1], high ^ now)
        return fold(now ^ secret[2], then ^ secret[0])

    def found(self, section: int, tag: int) -> list[int]:
        """The references under a tag of a table."""
        start, size = self.sections[section]
        cells = size // 8
        i, references = tag % cells, []
        while cell := self.load(start + 8 * i):
            if cell >> 32 == tag:
                references.append((cell & 0xFFFFFFFF) - 1)
            i = (i + 1) % cells
        return references

    def text(self, slot: int) -> tuple[bytes, int, int]:
        block, tier, flags, _ = struct.unpack_from("<IHBB", self.data, self.sections[SLOTS][0] + 8 * slot)
        size = self.units(TEXTS, block, 1)[0]
        start = self.sections[TEXTS][0] + 4 * (block + 1)
        return self.data[start : start + size], tier, flags

    def ids(self, slot: int) -> list[int]:
        id = self.units(IDS, slot, 1)[0]
        if not self.text(slot)[2] & 4:
            return [id]
        block, size = struct.unpack_from("<II", self.data, self.sections[LISTS][0] + 12 * (id ^ 0xFFFFFFFF))
        return list(self.units(IDS_OF_LISTS, block, size))

    def word(self, text: bytes) -> int:
        for id in self.found(WORD_TABLE, self.hash_word(text) >> 32):
            low, high, places, _rows, _refs = struct.unpack_from("<QQQII", self.data, self.sections[WORDS][0] + 32 * id)
            size = places >> 56
            held = struct.pack("<QQ", low, high)[:size]
            if size == 31:
                start = self.sections[LONG_WORDS][0] + 4 * low
                held = self.data[start : start + high]
            if held == text:
                return id
        return 0

    def bucket(self, key: dict[int, int]) -> int | None:
        """The block of the bucket with this key: {place: word id}."""
        tag = (sum(self.multipliers[place] * id for place, id in key.items()) & M64) >> 32 or 1
        start, size = self.sections[LINES]
        lines = size // 64
        line = tag * lines >> 32
        for _ in range(lines):
            numbers = struct.unpack_from("<16I", self.data, start + 64 * line)
            for i in range(7):
                block = numbers[8 + i]
                if numbers[i] == tag and self.units(BUCKETS, block + 1, len(key)) == tuple(key.values()):
                    return block
            if numbers[7] == 0:
                return None
            line = (line + 1) % lines
        return None


SPELLINGS = [
    (b"", "amqp", b"."), (b"a.b", "amqp", b"."), (b"a/b", "mqtt", b"/"), (b"x/sixteen/bytes", "mqtt", b"/"),
    (b"x/seventeen/bytes", "mqtt", b"/"), (b".".join([b"word"] * 20), "amqp", b"."),
]  # fmt: skip


def test_a_reader_made_of_the_page_finds_what_is_there() -> None:
    index = of_all_kinds()
    index.insert("exact.3.one", 1_000_000)
    reader = Reader(freeze(index).to_bytes())
    assert (reader.size, reader.checksum) == (len(reader.data), reader.checked())
    assert (reader.version, reader.pairs) == (index.version, len(index))
    for text, syntax, _separator in SPELLINGS:
        index.insert(text, 7, syntax=syntax)
    reader = Reader(freeze(index).to_bytes())
    for text, _syntax, separator in SPELLINGS:
        found = reader.found(EXACT_TABLE, reader.hash_text(text, separator) >> 32)
        assert text in [reader.text(slot)[0] for slot in found]
    tag = reader.hash_text(b"exact.3.one", b".") >> 32
    slots = [slot for slot in reader.found(EXACT_TABLE, tag) if reader.text(slot)[0] == b"exact.3.one"]
    assert [reader.ids(slot) for slot in slots] == [[3, 1_000_000]]
    assert reader.text(slots[0]) == (b"exact.3.one", 0xFFFF, 2 | 4)
    assert reader.word(b"temp") != 0 != reader.word(b"a" * 20)
    assert reader.word(b"nobody") == 0


def test_it_finds_each_filter_of_a_bucket_under_the_key_that_explain_names() -> None:
    index = of_all_kinds()
    reader = Reader(freeze(index).to_bytes())
    told = {one for topic in TOPICS for one in explain(index, topic) if one.tier == "buckets"}
    assert len(told) > 1
    for one in told:
        key = {place_of(row): reader.word(row.word or b"") for row in one.rows if row.kind.startswith("key")}
        block = reader.bucket(dict(sorted(key.items())))
        assert block is not None
        head = reader.units(BUCKETS, block, 1)[0]
        classes = reader.sections[CLASSES][0]
        assert reader.load(classes + 8 * (head & 1023)) == sum(1 << place for place in key) | 1 << 63
        slots = reader.sections[SLOTS][1] // 8
        units = reader.units(BUCKETS, block + 1 + len(key), (head >> 17) - 1 - len(key))
        held = [(reader.text(unit)[0].decode(), reader.ids(unit)) for unit in units if unit < slots]
        assert any(text == one.filter and one.id in ids for text, ids in held)


def place_of(row: Deciding) -> int:
    return {"key left": 0, "key right": 24, "key any": 48}[row.kind] + (
        0 if row.kind == "key any" else row.position or 0
    )
