"""Everything that is tested, as a mirror of the tree.

A package with a file, not by its folder alone: gmqtt installs a package `tests` of its own, which would go first.
"""
