"""Python's bodies of functions inside Spark SQL: register says which, rows runs them by row,
reduce and window by group; registry keeps what a session knows.
"""
