"""Relations that the system defines, as data: their shapes, and rows as functions of a snapshot."""
