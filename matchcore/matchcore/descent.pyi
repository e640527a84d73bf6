"""Nothing for Python: the trie is asked by the compiled modules only."""
