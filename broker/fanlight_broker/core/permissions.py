"""Permissions: who may publish and subscribe where (`ports.Permissions`). This one permits everything."""


from fanlight_broker.core.subscriber import Subscriber


class Unrestricted:
    unrestricted = True

    def check_publish(self, publisher: Subscriber, topic: bytes, syntax: str) -> None:
        pass

    def check_subscribe(self, subscriber: Subscriber, filter: bytes, syntax: str) -> None:
        pass
