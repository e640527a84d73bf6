"""Exit codes, and which error is which: scripts read these."""

from ..errors import (
    ConnectError,
    ConnectionClosed,
    ConnectionLost,
    FanlightError,
    InvalidURL,
    MessageTimeout,
    ReadingPaused,
    RequestTimeout,
)

OK = 0
REFUSED = 1  # the broker said no; nobody listens; credentials are wrong
USAGE = 2  # the command line is wrong (argparse's own code)
NO_CONNECTION = 3  # nobody there, or the connection was lost for good
TIMED_OUT = 4
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

EXPLAINED = """\
exit codes:
  0    done
  1    refused by the broker, or nobody is listening
  2    the command line is wrong
  3    no connection
  4    timed out
  130  interrupted
"""


def code(error: BaseException) -> int:
    """The exit code of an error that ended a command."""
    if isinstance(error, InvalidURL):
        return USAGE
    if isinstance(error, RequestTimeout | MessageTimeout | ReadingPaused):
        return TIMED_OUT
    if isinstance(error, ConnectError | ConnectionLost | ConnectionClosed):
        return NO_CONNECTION
    if isinstance(error, FanlightError):
        return REFUSED
    return USAGE
