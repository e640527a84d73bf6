import ssl

from fanlight_broker.net.tcp import Socket
from fanlight_broker.net.tls_memory import TlsMemory
from fanlight_broker.wire.inbox import ReceiveBuffer

class TlsSocket(Socket):
    def secure(
        self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, records: ReceiveBuffer,
        memory: TlsMemory | None,
    ) -> None: ...
    def write_eof(self) -> None: ...
