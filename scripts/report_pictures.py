"""Copy pictures of reports that tests/pipeline has made from build/reports/ to docs/, with a small palette.

`make report-pictures` runs the tests and then this, over the whole real data where it is (FANLIGHT_REAL_DATA).
"""

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
MADE, KEPT = ROOT / "build" / "reports", ROOT / "docs"
COLOURS = 256
#: By the names that tests/pipeline/test_written_pages.py gives them.
PICTURES = {
    "silence-silence-and-anomalies": "pipeline-silence",
    "headways-headways": "pipeline-headways",
}


def main() -> int:
    for made, kept in PICTURES.items():
        source, target = MADE / f"{made}.png", KEPT / f"{kept}.png"
        if not source.is_file():
            print(f"there is no {source}: run tests/pipeline first", file=sys.stderr)
            return 1
        with Image.open(source) as image:
            small = image.convert("RGB").quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            small.save(target, optimize=True)
        print(f"{target.name}: {source.stat().st_size:,} -> {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
