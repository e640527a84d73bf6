"""Nothing for Python: the trie is used by the compiled modules only."""
