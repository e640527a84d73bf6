"""The native protocol as a part of a broker."""

from typing import Final

from fanlight_broker.core.listening_port import ListeningPort
from fanlight_broker.core.protocol_part import ProtocolPart
from fanlight_broker.protocols.native import frames
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.protocols.native.settings import NativeSettings

HELLO: Final = bytes((frames.Type.HELLO,))


class NativePart(ProtocolPart):
    name = "native"
    title = "Fanlight's native protocol"
    settings = NativeSettings
    subprotocols = ("fanlight",)
    connection = NativeConnection
    formats = (FORMAT,)

    def __init__(self, settings: NativeSettings) -> None:
        super().__init__(settings)
        self.origins, self.durability = settings.native_websocket_origins, settings.native_durability

    def example(self, port: ListeningPort, host: str, number: int, *, credentials: bool) -> str:
        if port.websocket:
            return f"await connect('{'wss' if port.tls else 'ws'}://{host}:{number}') in fanlight.js"
        scheme, ca = ("fanlights", " --ca CA.pem") if port.tls else ("fanlight", "")
        user = "USER:PASSWORD@" if credentials else ""
        return f"fanlight sub --url {scheme}://{user}{host}:{number}{ca} 'stock.#'"

    @staticmethod
    def recognises(first: bytes) -> bool:
        # A length of less than 16 MiB, an array of few elements, and HELLO's type.
        return first[:1] == b"\0" and first[5:6] == HELLO and 0x90 <= first[4] <= 0x9F

    @staticmethod
    def refusal(first: bytes, text: str) -> bytes:
        return frames.error(None, "protocol_error", text, {}) + frames.goodbye("protocol_error", text)
