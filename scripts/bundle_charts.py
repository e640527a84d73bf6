"""Make pipeline/fanlight_spark/jobs/page/echarts.js of what npm has installed in build/charts: `make charts`.

esbuild puts the part of Apache ECharts that pipeline/charts/echarts.js names into one file, the same for the same lock
file; the licences of what is in it stand beside it.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
INSTALLED: Final = ROOT / "build" / "charts"
PAGE: Final = ROOT / "pipeline" / "fanlight_spark" / "jobs" / "page"
LICENSES: Final = (
    ("echarts, Apache-2.0", "echarts/NOTICE", "echarts/LICENSE"), ("zrender, BSD-3-Clause", "zrender/LICENSE"),
    ("tslib, 0BSD", "tslib/LICENSE.txt"),
)  # fmt: skip


def bundle() -> str:
    """The file. Raises CalledProcessError, FileNotFoundError if npm has not installed it."""
    flags = ("--bundle", "--minify", "--target=es2020", "--charset=utf8", "--legal-comments=eof")
    program = INSTALLED / "node_modules" / "esbuild" / "bin" / "esbuild"
    done = subprocess.run([program, "echarts.js", *flags], cwd=INSTALLED, capture_output=True, check=True, timeout=60)
    return done.stdout.decode("utf-8")


def licenses() -> str:
    """Of all that is in the bundle."""
    parts = []
    for title, *files in LICENSES:
        texts = [(INSTALLED / "node_modules" / name).read_text(encoding="utf-8").strip() for name in files]
        parts.append("\n\n".join([f"--- {title}", *texts]))
    return "\n\n".join(parts) + "\n"


def main() -> int:
    if not (INSTALLED / "node_modules").is_dir():
        print("make charts: npm has not installed Apache ECharts in build/charts", file=sys.stderr)
        return 1
    (PAGE / "echarts.js").write_text(bundle(), encoding="utf-8")
    (PAGE / "ECHARTS-LICENSES.txt").write_text(licenses(), encoding="utf-8")
    print(f"{PAGE / 'echarts.js'}: {(PAGE / 'echarts.js').stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
