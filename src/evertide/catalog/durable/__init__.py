"""Where catalog objects are kept: rows of text in one shard, opened under an epoch."""
