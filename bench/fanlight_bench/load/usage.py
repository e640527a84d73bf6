"""Processor time and memory of the broker, of the generator and of the machine; and which processes the broker is.

Off Linux, or when the broker is elsewhere, what is not known is None.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fanlight_bench import procfs

LISTEN = "0A"  # the state, in /proc/net/tcp


@dataclass(frozen=True)
class Usage:
    """A moment: seconds throughout; the differences of two are what counts."""

    wall: float
    broker: float | None   # processor time of all its processes
    own: list[float]       # of each process of the generator
    machine: float | None  # of all processors together


def usage(broker: Sequence[int], own: Sequence[int]) -> Usage:
    """This moment, for the broker's processes and the generator's; no `own`: it is this process."""
    seconds = [procfs.process_seconds(pid) or 0.0 for pid in own] or [time.process_time()]
    brokers = _sum(map(procfs.process_seconds, broker))
    return Usage(time.monotonic(), brokers, seconds, procfs.machine_seconds())


def resident_bytes(pids: Sequence[int]) -> int | None:
    """Memory of these processes that is in use now."""
    total = _sum(procfs.resident_bytes(pid) for pid in pids)
    return int(total) if total is not None else None


def spent(before: float | None, after: float | None) -> float | None:
    """The difference, None if one of them is not known."""
    return after - before if before is not None and after is not None else None


def each(total: float | None, count: int, scale: float = 1.0) -> float | None:
    """The average, or None if the total is not known."""
    return total * scale / count if total is not None and count else None


def busy(first: Usage, last: Usage) -> list[float]:
    """Of each process of the generator, the share of a processor."""
    return [(then - before) / (last.wall - first.wall) for before, then in zip(first.own, last.own, strict=True)]


def others(first: Usage, last: Usage, broker: float | None) -> float | None:
    """What else ran on the machine, as a share of one processor; broker: its seconds."""
    machine = spent(first.machine, last.machine)
    if machine is None or broker is None:
        return None
    return max(0.0, (machine - broker) / (last.wall - first.wall) - sum(busy(first, last)))


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum, or None if one is not known or the list is empty."""
    known = list(values)
    return sum(value for value in known if value is not None) if known and None not in known else None


def broker_pids(host: str, port: int) -> list[int]:
    """The processes that listen on this port of this machine, and their children; none if it is another machine."""
    if not _is_here(host):
        return []
    inodes = _listeners(port)
    found = [pid for pid in _processes() if inodes & _sockets(pid)]
    return with_children(found)


def with_children(pids: Sequence[int]) -> list[int]:
    """These processes and all that descend from them."""
    parents = {pid: _parent(pid) for pid in _processes()}
    found = list(pids)
    for pid in found:  # which grows as it goes
        found += [child for child, parent in parents.items() if parent == pid and child not in found]
    return found


def _is_here(host: str) -> bool:
    try:
        address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        with socket.socket(address[0]) as probe:
            probe.bind(address[4])  # works for the machine's own addresses only
    except OSError:
        return False
    return True


def _listeners(port: int) -> set[str]:
    """The inodes of the sockets that listen on a port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{fields[9]}]")
    return found


def _processes() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def _sockets(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):  # not ours to look into, or gone
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None
