"""GROUP BY: reduce_columns for most keys, reduce for those whose equal values may look different.

group is what is kept of a group, sums its additive part, members its rows where an aggregate must
look at them. Few changes go through reduce_rows, which keeps groups ready as a live_group each.
"""
