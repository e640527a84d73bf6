"""Processor time and memory of a process, read from /proc: how hard the broker worked for what it did.

Processor time per delivery is the figure that holds still on a shared machine; wall-clock rates move by a
third. Off Linux there is no /proc, and what is not known is None.
"""

import os
from pathlib import Path


def process_seconds(pid: int | None) -> float | None:
    """Processor time of all threads of a process, None if it is not to be known.

    From schedstat, which counts in nanoseconds; a thread that has ended is missing there. Where the kernel
    keeps none, from stat, in ticks of 10 ms.
    """
    if pid is None:
        return None
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
    except (OSError, IndexError):
        pass
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """The processes below one: those it started, and those they started. Empty where there is no /proc."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        try:
            threads = list(Path(f"/proc/{waiting.pop()}/task").iterdir())
            below = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
        except OSError:  # it has ended meanwhile
            continue
        found += below
        waiting += below
    return found


def tree_seconds(pid: int) -> float | None:
    """Processor time of a process and of all below it, also of those that have ended and were waited for."""
    ticks = 0
    try:
        for each in (pid, *descendants(pid)):
            try:
                fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            except FileNotFoundError:  # it has ended meanwhile, and is counted above it
                continue
            ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None


def resident_bytes(pid: int | None) -> int | None:
    """Memory of a process that is in use now, None if it is not to be known."""
    if pid is None:
        return None
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None


def machine_seconds() -> float | None:
    """Processor time of all processors together, None if it is not to be known."""
    try:
        user, nice, system, _, _, irq, softirq, steal, *_ = map(
            int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
        )
    except OSError:
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
