"""What pyproject.toml cannot say: every .pyx is a module. FANLIGHT_DEBUG=1 builds assertions in (wire/debug.pxd)."""

import os
from pathlib import Path

from setuptools import Extension, setup

# These need epoll: without them TCP has uvloop's transports.
OPTIONAL = {"fanlight_broker.net.poller", "fanlight_broker.net.tcp", "fanlight_broker.net.tls_socket"}

# Without free lists, so that what is freed is gone: live counts are exact, and a sanitizer sees every use after it.
DEBUG = [("FANLIGHT_DEBUG", "1"), ("CYTHON_USE_FREELISTS", "0")] if os.environ.get("FANLIGHT_DEBUG") == "1" else []
OPTIMISE = ["-O0" if DEBUG else os.environ.get("OPTIMISE", "-O3")]  # as in matchcore/setup.py

# What the core is compiled with. Beside this folder in a checkout, where one pip command builds all before it installs
# any; else it is installed.
MATCHCORE = "../matchcore"

setup(
    ext_modules=[
        Extension(
            name, [str(path)], extra_compile_args=OPTIMISE, define_macros=DEBUG,
            include_dirs=[MATCHCORE] if name.startswith("fanlight_broker.core.") else [],
            optional=name in OPTIONAL,
        )
        for path in sorted(Path("fanlight_broker").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
