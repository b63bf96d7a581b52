"""Work over much data, in a Spark application and a process of its own: running one out of memory
leaves the resident task's alone. host keeps the process from the replica's side, serve is the
process's own loop, protocol is what they say to each other; select and build are the two kinds of
job, results what a query leaves.
"""
