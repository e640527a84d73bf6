"""`fanlightd`, and `python -m fanlight_broker`, which is the same. early.py has what comes before the other imports."""

import sys

from fanlight_broker import early


def main() -> int:
    """Run the command line of this process; returns the exit code (config/exits.py)."""
    early.prepare(sys.argv[1:])
    try:
        from fanlight_broker.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # Exit.INTERRUPTED, which may not be imported yet
    finally:
        early.exit_decided()


if __name__ == "__main__":
    raise SystemExit(main())
