"""Commands of fanlightd that a broker runs in processes of their own.

A child imports what its parent imports, wherever that is found: the Debian package's own folder is on the path of its
commands alone. Nothing else counts, neither the working directory nor PYTHONPATH, which another user may have a say in.
"""

import os
import sys
from pathlib import Path
from typing import Final

import fanlight_broker

HOME: Final = os.fspath(Path(fanlight_broker.__file__).resolve().parents[1])
CODE: Final = "import sys; sys.path[:] = {path!a}; from fanlight_broker.__main__ import main; sys.exit(main())"


def command_line(*arguments: str) -> list[str]:
    """The program and its arguments, of `fanlightd ARGUMENTS`."""
    path = [each for each in sys.path if os.path.isabs(each)]
    if HOME not in path:  # an importer of its own has found it, or a relative path
        path.append(HOME)
    return [sys.executable, "-I", "-c", CODE.format(path=path), *arguments]
