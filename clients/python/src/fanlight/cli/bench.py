"""`fanlight bench`: hands over to the load harness, which is part of the broker's distribution."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

from . import exits


def run(arguments: Sequence[str]) -> int:
    if not _installed():
        print("fanlight bench: the load harness comes with the broker: pip install fanlight-broker", file=sys.stderr)
        return exits.USAGE
    return subprocess.call([sys.executable, "-m", "bench", *arguments])


def _installed() -> bool:
    # Both: any folder named bench would do for the second alone.
    try:
        importlib.metadata.distribution("fanlight-broker")
    except importlib.metadata.PackageNotFoundError:
        return False
    return importlib.util.find_spec("bench") is not None
