"""cython-lint over the compiled sources of what is shipped; pyproject.toml has its settings.

By itself it starts pycodestyle anew for each of 600 files, which takes longer than all its checks: here pycodestyle is
one process for all of them, with the same settings.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

from cython_lint import cython_lint

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("matchcore/matchcore", "broker/fanlight_broker", "bench/fanlight_bench")


def sources() -> list[str]:
    """Every .pyx, .pxd and .pxi."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.p[yx][xdi]")]
    return sorted(str(path) for path in found if path.suffix in (".pyx", ".pxd", ".pxi"))


def main() -> int:
    """Return the exit status: 1 if either of the two has found something."""
    files = sources()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cython-lint"]
    ignored = ",".join(sorted({*cython_lint.PYCODESTYLE_CODES, *settings["ignore"]}))
    command = ["pycodestyle", f"--ignore={ignored}", f"--max-line-length={settings['max-line-length']}", *files]
    style = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT)
    found = cython_lint.main(["--no-pycodestyle", *files])
    return 1 if style.wait() or found else 0


if __name__ == "__main__":
    sys.exit(main())
