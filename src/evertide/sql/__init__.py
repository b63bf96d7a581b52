"""Text to Plan.

Promises that what it accepts means what it means in PostgreSQL, and that what it does not know is
refused with a position. Reads one catalog snapshot; writes nothing, runs nothing. Files in order
of use: lexer, syntax, parser/, resolve, plan/, normalize, pretty.
"""
