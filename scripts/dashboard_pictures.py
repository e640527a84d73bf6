"""Copy the pictures that tests/dashboard has made from build/dashboard/ to docs/dashboard/, with a small palette.

`make dashboard-pictures` runs the tests and then this. 256 colours are enough for a page of text and lines, and take
half of the bytes.
"""

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
MADE, KEPT = ROOT / "build" / "dashboard", ROOT / "docs" / "dashboard"
COLOURS = 256


def main() -> int:
    pictures = sorted(MADE.glob("*.png"))
    if not pictures:
        print(f"no pictures in {MADE}: run tests/dashboard first", file=sys.stderr)
        return 1
    KEPT.mkdir(exist_ok=True)
    for picture in pictures:
        with Image.open(picture) as image:
            plain = image.convert("RGB")
            small = plain.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            small.save(KEPT / picture.name, optimize=True)
        print(f"{picture.name}: {picture.stat().st_size:,} -> {(KEPT / picture.name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
