from fanlight_content.contender import Contender

class LeSubscribe(Contender):
    """Clusters of conjunctions under access predicates."""
