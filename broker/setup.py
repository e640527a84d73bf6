"""What pyproject.toml cannot say: every .pyx is a module."""

from pathlib import Path

from setuptools import Extension, setup

# These two need epoll: without them plain TCP has uvloop's transports.
OPTIONAL = {"fanlight_broker.net.poller", "fanlight_broker.net.tcp"}

setup(
    ext_modules=[
        Extension(name, [str(path)], extra_compile_args=["-O3"], optional=name in OPTIONAL)
        for path in sorted(Path("fanlight_broker").rglob("*.pyx"))
        for name in [".".join(path.with_suffix("").parts)]
    ]
)
