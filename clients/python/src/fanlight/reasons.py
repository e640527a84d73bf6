"""Why an operation of the system failed, in words: without numbers of errno, and without Python's own phrases."""

import os
import re
import socket

_NUMBERED = re.compile(r"\[Errno (\d+)\]")


def of(error: BaseException) -> str:
    """The reason, such as `Connection refused`."""
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror):
        # asyncio joins what it got from several addresses into one text, each with its number.
        numbers = [error.errno] if error.errno else [int(each) for each in _NUMBERED.findall(str(error))]
        reasons = dict.fromkeys(os.strerror(number) for number in numbers)
        if reasons:
            return ", ".join(reasons)
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
