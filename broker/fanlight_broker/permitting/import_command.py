"""`fanlightd permissions import`: permissions of other brokers, printed as a file of permissions."""

import json
import sys
from pathlib import Path

from fanlight_broker.config import Exit
from fanlight_broker.permitting.import_mosquitto import import_acl
from fanlight_broker.permitting.import_rabbitmq import import_definitions
from fanlight_broker.permitting.importing import Imported, WrongImport


def import_permissions(broker: str, path: Path, *, vhost: str) -> int:
    try:
        made = _read(broker, path, vhost)
    except OSError as error:
        return _failed(f"{path}: cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return _failed(f"{path}: is not UTF-8 (at byte {error.start})")
    except (WrongImport, RecursionError) as error:
        return _failed(str(error))
    sys.stdout.write(made.toml())
    for each in made.left_out:
        print(f"fanlightd: not converted: {each}", file=sys.stderr)
    return Exit.FAILED if made.left_out else Exit.OK


def _read(broker: str, path: Path, vhost: str) -> Imported:
    text = path.read_text("utf-8")
    if broker == "mosquitto":
        return import_acl(text.split("\n"), path.name)
    try:
        definitions = json.loads(text)
    except ValueError as error:
        raise WrongImport(f"{path}: is not JSON: {error}") from None
    return import_definitions(definitions, vhost, path.name)


def _failed(reason: str) -> int:
    print(f"fanlightd: {reason}", file=sys.stderr)
    return Exit.USAGE
