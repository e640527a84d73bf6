from fanlight_content.contender import Contender

class List(Contender):
    """Selectors in a row, each verified by its program."""
