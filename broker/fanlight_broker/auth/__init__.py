"""Authentication: users in a file, or one password for everybody.

    authenticator = PasswordAuthenticator(Credentials(password_file=Path("users")))
    identity = await authenticator.authenticate("alice", "...", "192.0.2.7")   # raises AuthenticationFailed
"""

from fanlight_broker.auth.access import Credentials
from fanlight_broker.auth.authenticator import COUNTERS, PasswordAuthenticator
from fanlight_broker.auth.files import PasswordFileError

__all__ = ["COUNTERS", "Credentials", "PasswordAuthenticator", "PasswordFileError"]
