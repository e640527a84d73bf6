"""The command `fanlight` as a shell runs it: for the tests of the command line."""

import subprocess
import sys

FANLIGHT = [sys.executable, "-m", "fanlight.cli"]
SECONDS = 120  # a safety net: nothing here takes a second on a quiet machine


class Shell:
    """Runs the command; what is started is ended with the test."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.started: list[subprocess.Popen[bytes]] = []

    def __call__(self, *words: str | bytes, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Exit code, standard output, standard error."""
        run = subprocess.run(
            [*FANLIGHT, *words], input=stdin, capture_output=True, timeout=SECONDS, env=self.environment
        )
        return run.returncode, run.stdout, run.stderr.decode()

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start `sub` or `reply`, and wait until it is subscribed."""
        process = subprocess.Popen(
            [*FANLIGHT, *words, "--ready"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        )
        self.started.append(process)
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"fanlight "), process.communicate()
        return process


def finished(process: "subprocess.Popen[bytes]") -> tuple[int, bytes]:
    out, _ = process.communicate(timeout=SECONDS)
    return process.returncode, out


