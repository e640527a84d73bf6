"""tests/debug, and the tests of wire, with a debug build of the broker: assertions, live object counts, no free lists.

The broker is copied to build/debug and compiled there with -O0, the files that have changed since the last run only.
What Cython has made of them is copied, too, so that only the C compiler runs. What these tests do not import is not
compiled.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "debug" / "broker"
COPIED = (".py", ".pyx", ".pxd", ".c", ".h", ".toml")
COMPILED = (".pyx", ".c")
LEFT_OUT = {"core", "storage"}  # their compiled modules are a third of the compiler's work
TESTS = ("tests/debug", "tests/broker/wire")


def copy_sources() -> None:
    """Make the copy's sources those of the checkout; what is built stays where it is current."""
    wanted = {
        path.relative_to(ROOT / "broker"): path
        for path in [*(ROOT / "broker" / "fanlight_broker").rglob("*"), *(ROOT / "broker").glob("*")]
        if path.suffix in COPIED
        and not (path.suffix in COMPILED and LEFT_OUT.intersection(path.relative_to(ROOT / "broker").parts))
    }
    for path in [*COPY.rglob("*")]:
        # A build folder has the compiler's objects, by which setuptools finds out what is current.
        if path.suffix in COPIED and path.relative_to(COPY) not in wanted:
            path.unlink()
    for name, path in wanted.items():
        copy = COPY / name
        if not copy.exists() or copy.stat().st_mtime != path.stat().st_mtime:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)


def main() -> int:
    """Return the exit status of pytest, or of the build."""
    copy_sources()
    environment = {**os.environ, "FANLIGHT_DEBUG": "1"}
    build = [sys.executable, "-W", "ignore", "setup.py", "--quiet", "build_ext", "--inplace", f"-j{os.cpu_count()}"]
    status = subprocess.run(build, cwd=COPY, env=environment, check=False).returncode
    if status:
        return status
    environment["PYTHONPATH"] = os.pathsep.join([str(COPY), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
