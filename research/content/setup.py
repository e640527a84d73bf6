"""What pyproject.toml cannot say: every .pyx is a module, left out where it cannot be built."""

from pathlib import Path

from setuptools import Extension, setup

# Beside this folder in a checkout; else it is installed.
MATCHCORE = "../../matchcore"

setup(
    ext_modules=[
        Extension(name, [str(path)], extra_compile_args=["-O3"], include_dirs=[MATCHCORE], optional=True)
        for path in sorted(Path("fanlight_content").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
