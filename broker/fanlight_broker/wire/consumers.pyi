class Consumers:
    deliveries: int
    redeliveries: int
    acknowledgements: int
    def feed(self, now: float) -> None: ...
