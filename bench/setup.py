"""What pyproject.toml cannot say: every .pyx is a module, left out where it cannot be built: the load needs epoll."""

import os
from pathlib import Path

from setuptools import Extension, setup

# Beside this folder in a checkout, where one pip command builds all before it installs any; else it is installed.
MATCHCORE = "../matchcore"

OPTIMISE = os.environ.get("OPTIMISE", "-O3")  # as in matchcore/setup.py

setup(
    ext_modules=[
        Extension(name, [str(path)], extra_compile_args=[OPTIMISE], include_dirs=[MATCHCORE], optional=True)
        for path in sorted(Path("fanlight_bench").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
