"""Compare every compiled module with its .pyi: mypy's stubtest on the modules as they are built.

A stub has what Python uses of a module, so names that it leaves out are no error. What stubtest cannot know is in
stubs_allowed.txt, a reason above each line. A line that nothing needs any more is an error.
"""

import re
import sys
from pathlib import Path

from mypy import stubtest

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOTS = ("matchcore", "broker", "bench")
ALLOWED = Path(__file__).with_name("stubs_allowed.txt")


def modules() -> list[str]:
    """Every compiled module of the distributions that `make setup` builds."""
    found = [
        path.relative_to(ROOT / root).with_suffix("")
        for root in SOURCE_ROOTS
        for path in (ROOT / root).rglob("*.pyx")
        if "build" not in path.relative_to(ROOT / root).parts
    ]
    return sorted(".".join(path.parts) for path in found)


def main() -> int:
    """Return stubtest's exit status."""
    options = ["--concise", "--ignore-missing-stub", "--ignore-disjoint-bases", "--allowlist", str(ALLOWED)]
    options += ["--mypy-config-file", str(ROOT / "pyproject.toml")]
    names = modules()
    if not names or any(not re.fullmatch(r"[\w.]+", name) for name in names):
        print("check_stubs: no compiled modules found", file=sys.stderr)
        return 1
    return stubtest.test_stubs(stubtest.parse_options([*options, *names]))


if __name__ == "__main__":
    sys.exit(main())
