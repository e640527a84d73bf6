from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route

def publish(
    route: Route, ledger: Ledger, publisher: Outbox | None, message: Message, *, own: bool = False
) -> int: ...
def receive(ledger: Ledger, publisher: Outbox | None, message: Message) -> None: ...
