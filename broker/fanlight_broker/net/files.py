"""File descriptors: each connection needs one, and the default limit is low.

The soft limit is 1,024 nearly everywhere, for the sake of programs that use select(2). A program may raise it up to the
hard limit, which the administrator sets.
"""

import resource
from typing import Final

# Listeners, logs, the loop's own, the HTTP listener's connections, files being read: a few dozen, with a reserve.
SPARE: Final = 256


def allow(connections: int) -> int:
    """Raise the soft limit to what `connections` connections need. Returns how many are possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else min(connections, max(soft - SPARE, 0))
