"""For a bench that is a command of its own, since it starts processes: `--help` that tells what the figures are, and a
report on standard output.
"""

import argparse
import json
import platform
import sys


def parser(command: str, about: str | None) -> argparse.ArgumentParser:
    """For `python -m bench.micro.COMMAND`; `about` is the docstring of its file."""
    return argparse.ArgumentParser(
        prog=f"python -m bench.micro.{command}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def report(what: str, results: object) -> int:
    """Print it as JSON, the machine beside it; the exit code, 0."""
    told = {"python": platform.python_version(), "machine": platform.machine(), what: results}
    json.dump(told, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0
