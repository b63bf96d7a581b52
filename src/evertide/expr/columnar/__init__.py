"""Many rows at once: columns, the scalars over them, and what tells their values apart.

column (values of one column in numpy or Arrow), batch (rows with times and diffs), codes (integers
that are equal, or ordered, as SQL finds the values), hashes (of keys, as Spark hashes them),
scalars (the typed tree over columns), text_columns (what texts mean). Everything here gives what
the row-wise code gives, or says that it cannot and leaves the rows to it.
"""
