"""scripts/picture.py: what it accepts as a picture. Chromium itself is not started here."""

import struct
import zlib
from pathlib import Path

import pytest

from scripts import picture

ROOT = Path(__file__).resolve().parent.parent


def test_the_picture_of_the_tutorial_is_painted_everywhere_in_its_plot() -> None:
    """It was blank right of and below 512 pixels once."""
    rows, pixel = picture.rows_of((ROOT / "docs" / "pipeline-bars.png").read_bytes())
    assert (len(rows[0]) // pixel, len(rows)) == (picture.WIDTH, picture.HEIGHT)
    assert picture.even_tiles(rows, pixel, 100, 485, 868, 741) == []
    axis = {bytes(row[x * pixel : x * pixel + 3]) for row in rows[838:852] for x in range(520, 860)}
    assert len(axis) > 1  # dates stand below the plot, on the right side too


def test_a_part_that_was_not_painted_is_found() -> None:
    line = b"".join(bytes([x % 251, 0, 0]) for x in range(picture.WIDTH))
    blank = line[: 512 * 3] + b"\xff\xff\xff" * (picture.WIDTH - 512)
    assert picture.even_tiles([line] * 640, 3, 0, 0, 896, 640) == []
    found = picture.even_tiles([line] * 256 + [blank] * 384, 3, 0, 0, 896, 640)
    assert found == [(x, y) for y in (256, 384, 512) for x in (512, 640, 768)]


@pytest.mark.parametrize("kind", range(5))
def test_every_filter_of_png_is_undone(kind: int) -> None:
    width, lines = 4, [bytes((7 * x + 13 * y) % 256 for x in range(12)) for y in range(3)]
    data, above = b"", bytes(12)
    for line in lines:
        data += bytes([kind])
        for x in range(12):
            left, up, corner = (line[x - 3] if x > 2 else 0), above[x], (above[x - 3] if x > 2 else 0)
            p = left + up - corner
            guess = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
            data += bytes([(line[x] - (0, left, up, (left + up) // 2, guess)[kind]) % 256])
        above = line
    head = struct.pack(">IIBBBBB", width, 3, 8, 2, 0, 0, 0)
    png = picture.SIGNATURE
    for name, content in ((b"IHDR", head), (b"IDAT", zlib.compress(data)), (b"IEND", b"")):
        png += struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    assert picture.rows_of(png) == (lines, 3)
    assert picture.rows_of(picture.cut(lines, 3, 4, 3)) == (lines, 3)


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="not a PNG"):
        picture.rows_of(b"GIF89a")
