from fanlight_content.contender import Contender

class Counting(Contender):
    """Counts the true criteria of each conjunction."""
