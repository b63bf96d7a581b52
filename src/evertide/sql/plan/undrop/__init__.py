"""UNDROP: what was dropped is found, what comes back with it, and how its texts read today."""
