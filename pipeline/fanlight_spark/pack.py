"""`python -m fanlight_spark.pack environment.tar.gz`: what the workers of a cluster need, as one file.

A compiled module cannot be imported from the zip files of `--py-files`. So this packs the packages of the Python that
runs it, fanlight-spark with all that it needs but Spark, into an archive that Spark unpacks for each executor:

    PYSPARK_PYTHON=./environment/bin/python spark-submit --archives environment.tar.gz#environment job.py

    lib/           the packages, as in site-packages
    bin/python     starts the cluster's own Python (--python, the same minor version) with lib/ before all else

So run it on a machine like those of the cluster: the same processor and a C library that is not newer. The same
packages give the same bytes. docs/pipeline.md, On a cluster, has the rest.
"""

import argparse
import gzip
import io
import re
import sys
import tarfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from json import loads
from pathlib import Path
from typing import Final

ROOTS: Final = ("fanlight-spark", "pandas", "pyarrow")  # Spark asks for the last two where Arrow is used
OPTIONAL: Final = ("msgpack", "fastavro", "protobuf")  # of the extra `formats`, where it is installed
THEIRS: Final = frozenset(["pyspark", "py4j"])  # a cluster has its own
SOURCES: Final = frozenset([".c", ".cpp", ".pyc", ".pyx"])
WRONG: Final = 2

START = """#!/bin/sh
# Made by python -m fanlight_spark.pack: the cluster's Python, with the packages beside this file.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec {python} "$@"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the archive; the exit code."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_spark.pack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="FILE", help="such as environment.tar.gz")
    parser.add_argument("--python", default=version, metavar="NAME", help="of the cluster's Python (%(default)s)")
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="a package that the cluster's Python has already"
    )
    options = parser.parse_args(arguments)
    if re.fullmatch(r"[\w./+-]+", options.python) is None:
        parser.error(f"--python {options.python}: a name or a path is wanted")
    try:
        found = sorted(distributions(frozenset(map(canonical, options.without))).items())
        entries = {name: path for _, one in found for name, path in files(one)}
        write(options.out, entries, START.format(python=options.python))
    except (PackageNotFoundError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return WRONG
    names = ", ".join(f"{name} {one.version}" for name, one in found)
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.0f} MiB, {len(entries)} files: {names}")
    return 0


def distributions(without: frozenset[str]) -> dict[str, Distribution]:
    """Those that are needed and installed, by their names. Raises PackageNotFoundError for one that must be there."""
    found: dict[str, Distribution] = {}
    waiting = [(name, True) for name in ROOTS] + [(name, False) for name in OPTIONAL]
    while waiting:
        name, must = waiting.pop()
        name = canonical(name)
        if name in found or name in without or name in THEIRS:
            continue
        try:
            one = distribution(name)
        except PackageNotFoundError:
            if must:
                raise
            continue  # for another platform, or another version of Python
        found[name] = one
        plain = [wanted for wanted in one.requires or () if "extra ==" not in wanted]
        waiting += [(re.split(r"[^A-Za-z0-9._-]", wanted, maxsplit=1)[0], False) for wanted in plain]
    return found


def files(one: Distribution) -> Iterator[tuple[str, Path]]:
    """Those of a distribution: the name in site-packages, and where each is."""
    recorded = [file for file in one.files or () if ".." not in file.parts and file.suffix not in SOURCES]
    direct = one.read_text("direct_url.json")
    if direct is None or not loads(direct).get("dir_info", {}).get("editable"):
        yield from ((str(file), Path(str(file.locate()))) for file in recorded)
        return
    # Of a checkout: what was installed is a line that says where the package is.
    yield from ((str(file), Path(str(file.locate()))) for file in recorded if ".dist-info" in file.parts[0])
    package = one.name.replace("-", "_")
    spec = find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    folder = Path(spec.origin).parent
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix not in SOURCES and "__pycache__" not in path.parts:
            yield f"{package}/{path.relative_to(folder)}", path


def canonical(name: str) -> str:
    """As an index has it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write(out: Path, entries: dict[str, Path], start: str) -> None:
    """The archive, in one order and without times. Raises OSError."""
    with (
        out.open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, "bin/python", start.encode(), 0o755)
        for name, path in sorted(entries.items()):
            _add(archive, f"lib/{name}", path.read_bytes(), 0o755 if path.suffix == ".so" else 0o644)


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


if __name__ == "__main__":
    sys.exit(main())
