"""Rows with their history, found by key.

arrangement is what operators use; levels are its parts: layer (by key), column_layer, runs (mapped
files), found by finding. datums reads few values of them, recent remembers what was found,
key_parts takes keys out of rows. merging makes few of many beside ticks: due_merges (which),
merge_runs (how), ranges (so that it fits into memory).
key_order sorts an index, sharing lets several dataflows look into one.
"""
