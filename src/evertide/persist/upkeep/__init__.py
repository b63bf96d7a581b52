"""What keeps shards small and stores clean, in the background of every process.

Promises that it never changes what an allowed read returns, and never takes away a part that
somebody may still read or refer to.

maintenance (a process's lanes of work) asks merge_choice which batches to merge; compaction does
it, under claims where it takes long, by bucket_merge, merge and row_hash. sweep goes over all
shards for what killed processes left; purge empties what was dropped; part_age says how long a part
may wait for its state.
"""
