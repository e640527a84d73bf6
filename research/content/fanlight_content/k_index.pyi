from fanlight_content.contender import Contender

class KIndex(Contender):
    """Lists of conjunctions by size and key."""
