from fanlight_broker.wire.ledger import Account, PotShare
from fanlight_broker.wire.tag_set import TagSet
from fanlight_broker.wire.window import Window

def charge_window(window: Window, received: TagSet, account: Account, pot: PotShare) -> None: ...
