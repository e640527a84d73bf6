"""`fanlightd`, and `python -m broker`, which is the same: see early.py for what comes before the rest is imported."""

import sys

from broker import early


def main() -> int:
    """Run the command line of this process; returns the exit code (config/exits.py)."""
    early.prepare(sys.argv[1:])
    try:
        from broker.cli import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # Exit.INTERRUPTED, which may not be imported yet
    finally:
        early.exit_decided()


if __name__ == "__main__":
    raise SystemExit(main())
