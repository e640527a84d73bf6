"""Our distributions, built for real out of copies of their sources: what a stranger gets.

Each is made into a source distribution, that unpacked and made into a wheel. Nothing is downloaded. Where the checkout
has compiled modules made from the same bytes, they are taken, so that the compiler has little to do.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IGNORED = shutil.ignore_patterns(
    ".venv*", ".git", "build", "dist", "results", "__pycache__", "*.egg-info", "*.so", ".*_cache", "docs", "tests"
)
# Distribution -> (its folder, the package in it). In this order each finds what it needs at its build.
OURS = {
    "matchcore": ("matchcore", "matchcore"),
    "fanlight-permissions": ("permissions", "fanlight_permissions"),
    "fanlight-archive": ("archive", "fanlight_archive"),
    "fanlight-broker": ("broker", "fanlight_broker"),
    "fanlight": ("clients/python", "fanlight"),
    "fanlight-spark": ("pipeline", "fanlight_spark"),
    "fanlight-bench": ("bench", "fanlight_bench"),
}
# Small modules of the load generator. All others are taken from the checkout, if they were built there from the same
# bytes.
COMPILED_ANEW = ("histogram.pyx", "protocol.pyx", "shared_counters.pyx")


@dataclass(frozen=True, slots=True)
class Built:
    """The paths of what was built, by the name of the distribution."""

    archives: dict[str, Path]
    wheels: dict[str, Path]


def run(*command: str | Path, path: Path | None = None, **variables: str) -> str:
    """The output of a command that must succeed; `path` is where it finds further Python packages.

    It runs far from the checkout, which Python would otherwise import from.
    """
    ours = ("PYTHON", "FANLIGHT_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment |= {"PYTHONPATH": str(path)} if path else {}
    environment |= variables
    done = subprocess.run(
        [str(word) for word in command],
        cwd=tempfile.gettempdir(), env=environment, capture_output=True, text=True, check=False, timeout=1_800,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def one(folder: Path, pattern: str) -> Path:
    """The only file in `folder` of that name."""
    (found,) = folder.glob(pattern)
    return found


def build_all(work: Path, names: Iterable[str] = OURS) -> Built:
    """Source distributions, and the wheels built from them, of these of ours in the order of OURS, below `work`."""
    archives: dict[str, Path] = {}
    wheels: dict[str, Path] = {}
    build = (sys.executable, "-m", "build", "--no-isolation")
    # What a wheel contains does not depend on how well it is compiled: the last -O counts, and -O0 takes half the time.
    compiler = work / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")
    compiler.chmod(0o755)
    parallel = work / "parallel.cfg"
    parallel.write_text(f"[build_ext]\nparallel = {os.cpu_count()}\n", encoding="utf-8")
    for name in names:
        folder, package = OURS[name]
        shutil.copytree(ROOT / folder, work / "checkout" / folder, ignore=IGNORED)
        for source in (work / "checkout" / folder).rglob("*.pyx"):
            source.with_suffix(".c").unlink(missing_ok=True)  # translated by a build in the checkout
        file = f"{name.replace('-', '_')}-*"
        run(*build, "--sdist", "--outdir", work / "archives", work / "checkout" / folder)
        archives[name] = one(work / "archives", f"{file}.tar.gz")
        with tarfile.open(archives[name]) as opened:
            opened.extractall(work / "unpacked", filter="data")
        unpacked = work / "unpacked" / archives[name].name.removesuffix(".tar.gz")
        take_compiled(folder, package, unpacked)
        run(
            *build, "--wheel", "--outdir", work / "wheels", unpacked, CC=str(compiler), DIST_EXTRA_CONFIG=str(parallel)
        )
        wheels[name] = one(work / "wheels", f"{file}.whl")
    return Built(archives, wheels)


def built_once(work: Path) -> Built:
    """What build_all makes of all of ours, below `work`: whoever comes first builds it, and the others wait for it."""
    work.mkdir(parents=True, exist_ok=True)
    with open(work / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (work / "whole").exists():
            names = {name: f"{name.replace('-', '_')}-[0-9]*" for name in OURS}
            return Built(
                {name: one(work / "archives", f"{file}.tar.gz") for name, file in names.items()},
                {name: one(work / "wheels", f"{file}.whl") for name, file in names.items()},
            )
        shutil.rmtree(work / "checkout", ignore_errors=True)  # of one that failed
        built = build_all(work)
        (work / "whole").touch()
        return built


def take_compiled(folder: str, package: str, unpacked: Path) -> None:
    """Spare the compilers what the checkout has built from the same bytes: all that they would read there.

    What was built has to be younger than all of it. Cython translates, and setuptools compiles, what is newer than what
    was made of it.
    """
    read = ours(folder, package, ".pyx", ".pxd", ".pxi", ".h") | {"setup.py", "pyproject.toml"}
    if any(not (unpacked / name).exists() for name in read):
        return
    if any((unpacked / name).read_bytes() != (ROOT / folder / name).read_bytes() for name in read):
        return
    newest = max((ROOT / folder / name).stat().st_mtime for name in read - {"setup.py", "pyproject.toml"})
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    target = unpacked / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for name in ours(folder, package, ".pyx"):
        source = ROOT / folder / name
        made = source.with_suffix(".c"), source.with_suffix(suffix)
        if source.name not in COMPILED_ANEW and all(file.exists() and file.stat().st_mtime > newest for file in made):
            copies = unpacked / name.replace(".pyx", ".c"), target / name.replace(".pyx", suffix)
            copies[1].parent.mkdir(parents=True, exist_ok=True)
            for file, copy in zip(made, copies, strict=True):  # the module last: it is younger than the translation
                shutil.copy(file, copy)


def ours(folder: str, package: str, *suffixes: str) -> set[str]:
    """The files of a package with these endings, as paths in a wheel."""
    root = ROOT / folder / "src" if (ROOT / folder / "src").exists() else ROOT / folder
    return {
        path.relative_to(root).as_posix()
        for path in (root / package).rglob("*")
        if path.name.endswith(suffixes) and "results" not in path.parts
    }
