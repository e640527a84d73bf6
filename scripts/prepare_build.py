"""Make C of every .pyx of some folders, and have setuptools compile it, on all processors.

    prepare_build.py CONFIG FOLDER...

FOLDER is one with a setup.py. setuptools would translate one file after another, and compile as it goes. What is
translated here it finds up to date; it compiles as many files at once as CONFIG says, which DIST_EXTRA_CONFIG names.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

WORKERS_MAX = 8  # a compiler takes some 300 MB


def translate(workers: int) -> None:
    """Bring the C files of the setup.py of the working directory up to date. Raises CompileError."""
    import setuptools  # noqa: F401  (its distutils, not Python's)
    from Cython.Build import cythonize

    # isort: split
    from distutils.core import run_setup

    # Also of the workers, which are forked: a third of their time went into looking for garbage, as syntax trees are
    # millions of objects. So many more at a time take 70 MB more.
    gc.set_threshold(100_000, 20, 20)
    modules = run_setup("setup.py", stop_after="init").ext_modules
    folders = sorted({folder for module in modules for folder in module.include_dirs})
    cythonize(modules, nthreads=workers, include_path=folders, quiet=True)


def main(config: str, *folders: str) -> int:
    """Return the exit status: the first one of a translation that failed."""
    workers = min(os.cpu_count() or 1, WORKERS_MAX)
    Path(config).write_text(f"[build_ext]\nparallel = {workers}\n", encoding="utf-8")
    for folder in folders:
        # A process each: Cython remembers files by the names that they have in the working directory.
        program = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--here", str(workers)]
        if status := subprocess.run(program, cwd=folder, check=False).returncode:
            return status
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        translate(int(sys.argv[2]))
    else:
        sys.exit(main(*sys.argv[1:]))
