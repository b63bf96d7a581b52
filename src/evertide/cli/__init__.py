"""Programs; the only room that names concrete implementations.

Promises the command line of the guide: flags, exit codes, the one ready line. One module per
process, so that little need be imported lazily: main reads the arguments and runs serve, demo, sql
or catalog_debug; serve starts the processes adapter and replica. Of serve: processes (one child
kept running), generation (all that is loaded while adapters load), local_orchestrator (replicas as
children), process_tree and cpus (what holds them to their size), watch (what measures them),
report_server (what tells adapters), replicas (all of it).
"""
