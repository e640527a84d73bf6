"""Makes the samples in this folder from the full data: `python tests/data/make_samples.py FOLDER`.

Same folders, same files, same columns, fewer rows, so that a test reads either: the last days of the prices, the
first rows of each day of bus positions, and both catalogues whole. No value is changed. It needs pyarrow.
"""

import gzip
import shutil
import sys
from pathlib import Path

from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

HERE = Path(__file__).resolve().parent
DAYS = 40      # of prices, 505 tickers each
ROWS = 6_000  # of each file of bus positions
LICENCES = {"CNuge-kaggle-code.MIT.txt": "market", "CapMetrics.txt": "transit"}


def market(source: Path, target: Path) -> None:
    """The last days of the prices, and the whole list of securities."""
    table = parquet.read_table(source / "sp500_daily.parquet")
    days = sorted(set(table["date"].to_pylist()))[-DAYS:]
    first = next(row for row, day in enumerate(table["date"].to_pylist()) if day == days[0])  # sorted by date
    parquet.write_table(table.slice(first), target / "sp500_daily.parquet", compression="zstd", compression_level=19)
    shutil.copyfile(source / "us_listings.csv.gz", target / "us_listings.csv.gz")


def transit(source: Path, target: Path) -> None:
    """The first rows of each day, behind the head of the file."""
    for day in source.glob("austin_vehicles_*.csv.gz"):
        with gzip.open(day, "rb") as lines:
            kept = [next(lines) for _ in range(ROWS + 1)]
        (target / day.name).write_bytes(gzip.compress(b"".join(kept), mtime=0))


def devices(source: Path, target: Path) -> None:
    """The catalogue, which is small."""
    shutil.copyfile(source / "zigbee_catalog.jsonl.gz", target / "zigbee_catalog.jsonl.gz")


def main() -> None:
    """Make all samples."""
    folder = Path(sys.argv[1])
    for make in (market, transit, devices):
        target = HERE / make.__name__
        target.mkdir(exist_ok=True)
        make(folder / make.__name__, target)
    for licence in (folder / "licences").iterdir():
        shutil.copyfile(licence, HERE / f"LICENSE-{licence.name}")


if __name__ == "__main__":
    main()
