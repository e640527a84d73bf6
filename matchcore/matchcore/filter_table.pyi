"""What FilterIndex is made of: see filters.pyi."""
