"""`fanlightd check`, `repair` and `backup`: a store in a folder, without a broker (backup: also beside one)."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from fanlight_broker.assembly import PROTOCOLS
from fanlight_broker.config import Exit
from fanlight_broker.storage.backup import BackupError, backup, finish
from fanlight_broker.storage.checking import CheckError, Findings, check
from fanlight_broker.storage.repair import RepairError, plan, repair
from fanlight_broker.storage.segments import LogError
from fanlight_broker.wire.message import Format


def formats() -> dict[str, Format]:
    return {format.family: format for protocol in PROTOCOLS for format in protocol.formats}


def check_store(folder: Path, *, as_json: bool) -> int:
    try:
        found = check(folder, formats())
    except CheckError as error:
        if as_json:
            print(json.dumps({"folder": str(folder), "error": str(error)}))
        return _failed("not checked", str(error))
    if as_json:
        print(json.dumps(found.view()))
    else:
        print("\n".join(described(found)))
    return Exit.OK if found.sound else Exit.FAILED


def described(found: Findings) -> list[str]:
    """What a check has found, in lines."""
    lines = [
        f"{found.folder}: {'sound' if found.sound else 'DAMAGED'}",
        f"  sessions {found.sessions:,}, subscriptions {found.subscriptions:,}, queues {found.queues:,}",
        f"  messages waiting {found.waiting:,}, in flight {found.in_flight:,}, delayed {found.delayed:,}, "
        f"retained {found.retained:,}, marks {found.marks:,}",
        f"  log: {found.segments:,} files, {found.spare_files:,} spare ones, {found.bytes:,} bytes, "
        f"{found.entries:,} entries, {found.records:,} records",
    ]
    if not found.sound:
        lines += ["", *(f"  {problem}" for problem in found.problems), ""]
        lines.append(f"`fanlightd repair {found.folder}` gives up what is lost, and keeps the damaged files.")
    return lines


def repair_store(folder: Path, *, yes: bool) -> int:
    try:
        found = check(folder, formats())
        if found.sound:
            print(f"{folder}: sound; nothing to repair")
            return Exit.OK
        print("\n".join(described(found)[:-1]))
        print("repair:")
        for line in plan(found):
            print(f"  {line}")
        if not yes and not _agreed():
            return Exit.FAILED
        repair(found)
        found = check(folder, formats())
    except (CheckError, LogError) as error:
        return _failed("not repaired", str(error))
    except (RepairError, OSError) as error:
        return _failed("not repaired", str(error), Exit.FAILED)
    print("\n".join(described(found)))
    return Exit.OK if found.sound else Exit.FAILED


def _agreed() -> bool:
    if not sys.stdin.isatty():
        print("fanlightd: not repaired: nobody to ask; --yes agrees to this", file=sys.stderr)
        return False
    sys.stdout.flush()
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing was changed")
        return False
    return True


def backup_store(folder: Path, target: Path) -> int:
    try:
        partial = backup(folder, target, _progress())
    except (BackupError, OSError) as error:
        return _failed("not copied", str(error))
    try:
        found = check(partial, formats())
        finish(partial, target)
    except (CheckError, OSError) as error:
        shutil.rmtree(partial)
        return _failed("not copied", str(error))
    found.folder = str(target)
    print("\n".join(described(found)))
    return Exit.OK if found.sound else Exit.FAILED


def _progress() -> Callable[[str], None]:
    return lambda line: print(line, file=sys.stderr)


def _failed(what: str, reason: str, code: Exit = Exit.USAGE) -> int:
    print(f"fanlightd: {what}: {reason}", file=sys.stderr)
    return code
