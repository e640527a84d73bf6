from fanlight_content.contender import Contender

class Ours(Contender):
    """matchcore's screen of one filter."""

    def shape(self) -> dict[str, int]: ...
