"""DDL: plans become ops, ops become an append to the catalog; a lost race plans again."""
