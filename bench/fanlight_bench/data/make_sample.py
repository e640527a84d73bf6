"""Makes the sample of the demo from the full data: `python bench/fanlight_bench/data/make_sample.py FOLDER`.

FOLDER holds market/sp500_daily.parquet, market/us_listings.csv.gz and licences/. The sample is the last days
of the price file, every ticker of the index, values as they are, each with its exchange: lower-case from the
listings, "us" for a ticker that is listed no more. The same input gives the same bytes. It needs pyarrow;
what it writes needs nothing but Python.
"""

import argparse
import csv
import gzip
import io
import shutil
from pathlib import Path

from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

HERE = Path(__file__).resolve().parent
SAMPLE = HERE / "sp500_sample.csv.gz"
COLUMNS = ("date", "ticker", "exchange", "open", "high", "low", "close", "volume")
DAYS = 26  # 2018 until its 7 February: some 300 kB, and the fall of 5 February is in it
UNLISTED = "us"


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the sample of the demo from the full data.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    days, rows = make(folder, SAMPLE)
    shutil.copyfile(folder / "licences" / "CNuge-kaggle-code.MIT.txt", HERE / "LICENSE-sp500.txt")
    print(f"{SAMPLE.name}: {days} days, {rows} rows, {SAMPLE.stat().st_size} bytes")


def make(folder: Path, sample: Path) -> tuple[int, int]:
    """Write the sample; how many days and rows it has."""
    exchanges = _exchanges(folder / "market" / "us_listings.csv.gz")
    rows = parquet.read_table(folder / "market" / "sp500_daily.parquet").to_pylist()
    days = set(sorted({row["date"] for row in rows})[-DAYS:])
    rows = [row for row in rows if row["date"] in days]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        row["exchange"] = exchanges.get(row["ticker"], UNLISTED)
        writer.writerow(["" if row[name] is None else row[name] for name in COLUMNS])
    # Without a time in the head of the file, the same rows are the same bytes.
    sample.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return len(days), len(rows)


def _exchanges(path: Path) -> dict[str, str]:
    with gzip.open(path, "rt", newline="") as lines:
        return {row["ticker"]: row["exchange"].lower() for row in csv.DictReader(lines)}


if __name__ == "__main__":
    main()
