"""What pyproject.toml cannot say: every .pyx is a module."""

from pathlib import Path

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(name, [str(path)], extra_compile_args=["-O3"])
        for path in sorted(Path("matchcore").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
