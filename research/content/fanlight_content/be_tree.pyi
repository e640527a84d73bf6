from fanlight_content.contender import Contender

class BETree(Contender):
    """A tree cut by attribute and by value in turns."""
