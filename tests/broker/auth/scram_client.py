"""The client's side of SCRAM-SHA-256, written from RFC 5802, 3; it shares no code with the broker's."""

import base64
import hashlib
import hmac
import os


class ScramClient:
    def __init__(self, user: str, password: str, nonce: str = "", header: str = "n,,") -> None:
        self._password = password
        self._header = header
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={escaped},r={nonce or base64.b64encode(os.urandom(18)).decode()}"
        self.salt, self.iterations = b"", 0
        self._signature = b""

    def first(self) -> bytes:
        return (self._header + self._bare).encode()

    def final(self, challenge: bytes) -> bytes:
        parts = dict(part.split("=", 1) for part in challenge.decode().split(","))
        assert parts["r"].startswith(self._bare.partition(",r=")[2])
        self.salt, self.iterations = base64.b64decode(parts["s"]), int(parts["i"])
        salted = hashlib.pbkdf2_hmac("sha256", self._password.encode(), self.salt, self.iterations)
        client_key = hmac.new(salted, b"Client Key", "sha256").digest()
        without = f"c={base64.b64encode(self._header.encode()).decode()},r={parts['r']}"
        exchanged = b",".join((self._bare.encode(), challenge, without.encode()))
        signature = hmac.new(hashlib.sha256(client_key).digest(), exchanged, "sha256").digest()
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        server_key = hmac.new(salted, b"Server Key", "sha256").digest()
        self._signature = hmac.new(server_key, exchanged, "sha256").digest()
        return f"{without},p={proof}".encode()

    def knows_server(self, final: bytes) -> bool:
        return final == b"v=" + base64.b64encode(self._signature)
