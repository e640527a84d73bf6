"""A certificate for the brokers that are spoken to by TLS: made anew in the run's folder, by the command `openssl`."""

from pathlib import Path

from fanlight_bench.launch import LaunchError
from fanlight_bench.peers.peer import said, which

# The curve that all brokers prefer. Nobody checks it: the load sends no secrets.
COMMAND = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
           "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")  # fmt: skip


def certificate(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate and its key. LaunchError: they cannot be made."""
    program = which("openssl")
    if program is None:
        raise LaunchError("rows by TLS need the command openssl, which makes the certificate; it is not installed")
    files = folder / "certificate.pem", folder / "key.pem"
    words = said([program, *COMMAND, "-out", str(files[0]), "-keyout", str(files[1])])
    if not all(file.exists() for file in files):
        raise LaunchError(f"openssl made no certificate; its words:\n{words}")
    return files
