"""Authentication: users in a password file, or one password for everybody.

    authenticator = PasswordAuthenticator(Credentials(password_file=Path("users")))
    identity = await authenticator.authenticate("alice", "...", "192.0.2.7")   # raises AuthenticationFailed
"""

from broker.auth.access import Credentials
from broker.auth.authenticator import COUNTERS, PasswordAuthenticator
from broker.auth.password_file import PasswordFileError

__all__ = ["COUNTERS", "Credentials", "PasswordAuthenticator", "PasswordFileError"]
