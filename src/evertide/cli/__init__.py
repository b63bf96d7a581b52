"""Programs; the only room that names concrete implementations.

Promises the command line of the guide: flags, exit codes, the one ready line. One module per
process, so that nothing need be imported lazily: main reads the arguments and runs serve, demo, sql
or catalog_debug; serve starts the processes adapter and replica.
"""
