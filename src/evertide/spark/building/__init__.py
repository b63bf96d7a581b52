"""How a dataflow's state comes to be: filling (ticks from nothing), hydrate with part_jobs and
state_files (Spark SQL over files), recompute (ticks that change too much to be followed).
"""
