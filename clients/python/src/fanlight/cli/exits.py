"""Exit codes, and which error is which: scripts read these."""

from ..errors import (
    ConnectError,
    ConnectionClosed,
    ConnectionLost,
    FanlightError,
    InvalidURL,
    MessageTimeout,
    NoResponders,
    ReadingPaused,
    RequestTimeout,
)

OK = 0
REFUSED = 1  # the broker said no, or the answer to a request says that it is an error
USAGE = 2  # the command line is wrong (argparse's own code)
NO_CONNECTION = 3  # nobody there, or the connection was lost for good
TIMED_OUT = 4
NOBODY = 5  # nobody is subscribed to what was published or asked
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

EXPLAINED = """\
exit codes:
  0    done
  1    refused by the broker (credentials, topic, size, ...), or the answer to a request is an error
  2    the command line is wrong
  3    no connection
  4    timed out
  5    nobody is subscribed, or no selector is true of it: `pub --receipt`, `request`
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
    if isinstance(error, NoResponders):
        return NOBODY
    if isinstance(error, FanlightError):
        return REFUSED
    return USAGE
