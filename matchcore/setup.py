"""What pyproject.toml cannot say: every .pyx is a module. OPTIMISE=-O1 compiles a third quicker, for tests."""

import os
from pathlib import Path

from setuptools import Extension, setup

OPTIMISE = os.environ.get("OPTIMISE", "-O3")

setup(
    ext_modules=[
        Extension(name, [str(path)], extra_compile_args=[OPTIMISE])
        for path in sorted(Path("matchcore").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
