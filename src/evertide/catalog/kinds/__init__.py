"""The catalog's records by family; objects.py is the list of them all and where to import from."""
