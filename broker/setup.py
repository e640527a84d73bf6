"""What pyproject.toml cannot say: every .pyx is a module. FANLIGHT_DEBUG=1 builds assertions in (wire/debug.pxd)."""

import os
from pathlib import Path

from setuptools import Extension, setup

# These two need epoll: without them plain TCP has uvloop's transports.
OPTIONAL = {"fanlight_broker.net.poller", "fanlight_broker.net.tcp"}

# Without free lists, so that what is freed is gone: live counts are exact, and a sanitizer sees every use after it.
DEBUG = [("FANLIGHT_DEBUG", "1"), ("CYTHON_USE_FREELISTS", "0")] if os.environ.get("FANLIGHT_DEBUG") == "1" else []
OPTIMISE = ["-O0" if DEBUG else "-O3"]

setup(
    ext_modules=[
        Extension(name, [str(path)], extra_compile_args=OPTIMISE, define_macros=DEBUG, optional=name in OPTIONAL)
        for path in sorted(Path("fanlight_broker").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
