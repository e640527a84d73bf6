from fanlight_content.contender import Contender

class OpIndex(Contender):
    """Counting among the conjunctions whose pivot attribute the message has."""
