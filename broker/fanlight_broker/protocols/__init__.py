"""The protocols that clients speak, a folder each. Delete one and the rest stands."""
