"""A secret in a file of its own, as Docker and Kubernetes hand secrets to a container: one line, and nothing else."""

from pathlib import Path
from typing import Final

from fanlight_broker.core.errors import FanlightError

SECRET_BYTES_MAX: Final = 4096


class SecretFileError(FanlightError):
    """A file does not hold a secret. The text names the file, and shows nothing of its content."""


def secret_in(path: Path) -> str:
    """The line of the file, without its end and the spaces around it. Raises SecretFileError."""
    try:
        with path.open("rb") as file:
            raw = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise SecretFileError(f"{path}: cannot be read: {error.strerror}") from error
    if len(raw) > SECRET_BYTES_MAX:
        raise SecretFileError(f"{path}: is longer than {SECRET_BYTES_MAX} bytes")
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        raise SecretFileError(f"{path}: is not UTF-8") from None
    if not text or len(text.split("\n")) > 1 or "\0" in text:
        raise SecretFileError(f"{path}: must hold one line, the secret")
    return text


def bare_password_in(path: Path) -> str | None:
    """The secret, if that is what the file holds; None for a password file (user:hash), or anything else.

    A line with a colon never counts as a password: it could belong to a damaged password file.
    """
    try:
        text = secret_in(path)
    except SecretFileError:
        return None
    return None if ":" in text or text.startswith("#") else text
