"""Where a query is read, at which timestamp, and how.

read is the way of every SELECT: plans (optimised once per text), at_leisure (constants that take
long), leaves (where each collection is read from), timestamp (when), then fetching (what each
holds): by index_lookup, found_rows (rows that a condition names, by selection and pinned), ahead
(what a view's replicas tell before its shard has it, by asking), dynamic (relations that are in no
catalog) or a replica.
"""
