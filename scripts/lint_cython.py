"""cython-lint over the compiled sources of what is shipped; pyproject.toml has its settings.

It starts pycodestyle by name for each file, which need not be on the PATH of whoever calls the interpreter.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
FOLDERS = ("matchcore/matchcore", "broker/fanlight_broker", "bench/fanlight_bench")


def sources() -> list[str]:
    """Every .pyx, .pxd and .pxi, by its path in the checkout."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.p[yx][xdi]")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix in (".pyx", ".pxd", ".pxi"))


def main() -> int:
    """Return the exit status of cython-lint."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(BIN / "cython-lint"), *sources()]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
