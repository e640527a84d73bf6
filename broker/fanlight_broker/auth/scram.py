"""The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O: two messages of the client, two answers.

    client-first   n,,n=alice,r=<nonce>                       what begins each login
    server-first   r=<nonce><more>,s=<salt>,i=<iterations>
    client-final   c=biws,r=<nonce><more>,p=<proof>           shows that the client knows the password
    server-final   v=<signature>                              shows that the server knows its keys

The password is never sent, and what is sent once is of no use later. Channel binding is not offered: a client that
asks for it is refused. An unknown user gets a salt as well, always the same one (`decoy`), and a wrong proof.
"""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Callable
from typing import Final

from fanlight_broker.auth.hashing import decoded
from fanlight_broker.auth.scram_keys import ITERATIONS, SALT_BYTES, ScramKeys
from fanlight_broker.core.errors import AuthenticationFailed

MECHANISM: Final = "SCRAM-SHA-256"
MESSAGE_BYTES_MAX: Final = 4_096

_FIRST: Final = re.compile(
    r"((?:n|y|p=[A-Za-z0-9.-]+),(?:a=([^,]+))?,)((m=[^,]*,)?n=([^,]+),r=([!-+\--~]{8,512})(?:,.*)?)"
)
_FINAL: Final = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([!-+\--~]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)")
_NAME: Final = re.compile(r"=2C|=3D|=")


class ScramServer:
    """One login.

    keys   of a user; for an unknown one those of `decoy`
    nonce  makes the server's part, in printable ASCII without a comma
    """

    def __init__(self, keys: Callable[[str], ScramKeys], nonce: Callable[[], str] | None = None) -> None:
        self._keys_of = keys
        self._nonce = nonce or _random
        self._header = self._client_first = self._server_first = self._both = ""
        self.user = ""
        self.keys: ScramKeys | None = None  # once `first` has returned
        self._signature = b""

    def first(self, message: bytes) -> bytes:
        """Take client-first, return server-first. Raises AuthenticationFailed."""
        match = _FIRST.fullmatch(_text(message))
        if match is None:
            raise AuthenticationFailed("SCRAM: the first message cannot be read")
        self._header, authorized, self._client_first, extension, name, nonce = match.groups()
        if extension is not None:  # RFC 5802, 5.1: one that a server does not know ends the login
            raise AuthenticationFailed("SCRAM: mandatory extensions are not known here")
        if self._header.startswith("p="):
            raise AuthenticationFailed("SCRAM: channel binding is not offered here")
        self.user = _name(name)
        if authorized is not None and _name(authorized) != self.user:
            raise AuthenticationFailed("SCRAM: nobody may act as another user")
        self.keys = keys = self._keys_of(self.user)
        self._both = nonce + self._nonce()
        self._server_first = f"r={self._both},s={base64.b64encode(keys.salt).decode()},i={keys.iterations}"
        return self._server_first.encode()

    def final(self, message: bytes) -> bool:
        """Take client-final. Returns whether its proof is right. Raises AuthenticationFailed."""
        match = _FINAL.fullmatch(_text(message))
        if match is None or self.keys is None:
            raise AuthenticationFailed("SCRAM: the final message cannot be read")
        without_proof, header, both, proof = match.groups()
        if decoded(header) != self._header.encode() or not hmac.compare_digest(both.encode(), self._both.encode()):
            raise AuthenticationFailed("SCRAM: the final message does not belong to the first one")
        exchanged = ",".join((self._client_first, self._server_first, without_proof)).encode()
        signature, proven = hmac.digest(self.keys.stored_key, exchanged, "sha256"), decoded(proof)
        if len(proven) != len(signature):
            return False
        client_key = bytes(one ^ other for one, other in zip(proven, signature, strict=True))
        self._signature = hmac.digest(self.keys.server_key, exchanged, "sha256")
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.keys.stored_key)

    def done(self) -> bytes:
        """server-final, for a client whose proof is right."""
        return b"v=" + base64.b64encode(self._signature)


def decoy(key: bytes, user: str, iterations: int = ITERATIONS) -> ScramKeys:
    """Keys of a user that does not exist: always the same for a key and a name, and without a password."""
    def part(what: bytes) -> bytes:
        return hmac.digest(key, what + user.encode(errors="surrogatepass"), "sha256")

    return ScramKeys(iterations, part(b"salt ")[:SALT_BYTES], part(b"stored "), part(b"server "))


def _random() -> str:
    return base64.b64encode(os.urandom(18)).decode()


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise AuthenticationFailed(f"SCRAM: a message of more than {MESSAGE_BYTES_MAX} bytes")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("SCRAM: a message that is not UTF-8") from None


def _name(text: str) -> str:
    """A name without its escapes (RFC 5802, 5.1). Raises AuthenticationFailed."""
    def character(match: "re.Match[str]") -> str:
        if match[0] == "=":
            raise AuthenticationFailed("SCRAM: a name with an escape other than =2C and =3D")
        return "," if match[0] == "=2C" else "="

    return _NAME.sub(character, text)
