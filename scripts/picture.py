"""A picture of a page: a PNG made by a headless Chromium, and looked at before it takes the place of the old one.

    python scripts/picture.py build/bars/report.html docs/pipeline-bars.png

The page must need nothing from a network. Chromium paints in tiles of 256 and 512 pixels, and has left some unpainted:
so the window is larger than the picture, and a picture with an even tile where the page has a plot is refused.
"""

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

WIDTH, HEIGHT = 900, 880
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=10000",
)  # fmt: skip
SIGNATURE = b"\x89PNG\r\n\x1a\n"
TILE = 128


def taken(page: Path, folder: Path, browser: str) -> bytes:
    """The picture as Chromium makes it. Raises CalledProcessError, TimeoutExpired."""
    made = folder / "made.png"
    command = [
        browser, *FLAGS, f"--window-size={WIDTH},{2 * HEIGHT}", f"--user-data-dir={folder / 'profile'}",
        f"--screenshot={made}", page.resolve().as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    return made.read_bytes()


def rows_of(png: bytes) -> tuple[list[bytes], int]:
    """(lines of pixels, bytes of a pixel) of a PNG of 8 bits a colour, not interlaced. Raises ValueError."""
    at, data, head = len(SIGNATURE), b"", b""
    if png[:at] != SIGNATURE:
        raise ValueError("not a PNG")
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        content, at = png[at + 8 : at + 8 + size], at + 12 + size
        head, data = (content if kind == b"IHDR" else head), (data + content if kind == b"IDAT" else data)
    width, _, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if depth != 8 or colours not in (2, 6) or interlaced:
        raise ValueError("only 8 bits a colour, RGB or RGBA, not interlaced")
    pixel = 3 if colours == 2 else 4
    return _unfiltered(zlib.decompress(data), width * pixel, pixel), pixel


def _unfiltered(data: bytes, width: int, pixel: int) -> list[bytes]:
    rows: list[bytes] = []
    above = bytes(width)
    for at in range(0, len(data), width + 1):
        kind, line = data[at], bytearray(data[at + 1 : at + 1 + width])
        for x in range(width):
            left, up = (line[x - pixel] if x >= pixel else 0), above[x]
            corner = above[x - pixel] if x >= pixel else 0
            line[x] = (line[x] + (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]) & 255
        above = bytes(line)
        rows.append(above)
    return rows


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def cut(rows: list[bytes], pixel: int, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    """A PNG of the upper left part, without its transparency."""
    lines = [b"".join(row[at : at + 3] for at in range(0, width * pixel, pixel)) for row in rows[:height]]
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    return SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    )


def even_tiles(rows: list[bytes], pixel: int, left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
    """Tiles of one colour in a part of a picture."""
    found = []
    for y in range(top, bottom - TILE + 1, TILE):
        for x in range(left, right - TILE + 1, TILE):
            places = range(x * pixel, (x + TILE) * pixel, pixel)
            colours = {row[at : at + 3] for row in rows[y : y + TILE] for at in places}
            found += [(x, y)] if len(colours) < 2 else []
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome") or "chromium")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="picture-", ignore_cleanup_errors=True) as folder:
        try:
            rows, pixel = rows_of(taken(options.page, Path(folder), options.browser))
        except FileNotFoundError as error:
            print(f"picture: {error.filename}: not found (Debian: apt-get install chromium)", file=sys.stderr)
            return 2
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            print(f"picture: {error}", file=sys.stderr)
            return 1
    if empty := even_tiles(rows, pixel, 100, 320, 850, 320 + 2 * TILE):
        print(f"picture: nothing is painted at {empty}: try again", file=sys.stderr)
        return 1
    aside = options.picture.with_suffix(".new")
    aside.write_bytes(cut(rows, pixel))
    os.replace(aside, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
