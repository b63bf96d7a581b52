"""How a dataflow's state comes to be: filling (ticks from nothing), hydrate with part_jobs,
run_files, result_files and state_files (Spark SQL, from files to files), recompute (ticks that
change too much to be followed).
"""
