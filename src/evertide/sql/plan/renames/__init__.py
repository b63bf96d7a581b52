"""RENAME TO and SWAP WITH: other names, and the same meaning of every stored text."""
