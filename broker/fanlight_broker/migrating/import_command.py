"""`fanlightd import FILE`: a mosquitto.conf as fanlight.toml and the files beside it, printed or written.

`fanlightd import --sent FILE` is what the API runs: texts by their names on standard input, and what is made of them on
standard output, both as JSON. Whoever sends files gets to see no other ones.
"""

import json
import os
import sys
from pathlib import Path

from fanlight_broker.config import Exit
from fanlight_broker.migrating.conf_files import ConfError, FilesOnDisk, FilesSent
from fanlight_broker.migrating.converted import Converted
from fanlight_broker.migrating.mosquitto_conf import convert

SETTINGS = "fanlight.toml"


def import_configuration(path: Path, to: Path | None) -> int:
    """to: the folder to write to; None: print. FAILED if something has no equivalent, which is said on stderr."""
    try:
        made = convert(FilesOnDisk(path.parent), path.name)
        if to is not None:
            _write(made, to)
    except ConfError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}")
    if to is None:
        _print(made)
    for each in made.left_out:
        print(f"fanlightd: not converted: {each}", file=sys.stderr)
    return Exit.FAILED if made.left_out else Exit.OK


def import_sent(path: Path) -> int:
    try:
        made = convert(FilesSent(json.load(sys.stdin), path.name), path.name)
    except ConfError as error:
        return _failed(str(error))
    files = [{"name": name, "text": text, "secret": secret} for name, (text, secret) in _files(made).items()]
    json.dump({"files": files, "left_out": made.left_out, "notes": made.notes}, sys.stdout)
    return Exit.OK


def _files(made: Converted) -> dict[str, tuple[str, bool]]:
    return {SETTINGS: (made.settings_text(), False)} | {
        name: (file.text, file.secret) for name, file in made.files.items()
    }


def _print(made: Converted) -> None:
    for name, (text, secret) in _files(made).items():
        shown = f"# {len(text.splitlines())} lines, not shown: --to DIR writes them\n" if secret else text
        sys.stdout.write(f"# ---- {name} ----\n{shown}\n")


def _write(made: Converted, folder: Path) -> None:
    """No file is overwritten: then none is written. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files = _files(made)
    if there := next((folder / name for name in files if (folder / name).exists()), None):
        raise FileExistsError(17, "is there already; choose another folder", str(there))
    for name, (text, secret) in files.items():
        opened = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(text)
        print(folder / name)


def _failed(reason: str) -> int:
    print(f"fanlightd: {reason}", file=sys.stderr)
    return Exit.USAGE
