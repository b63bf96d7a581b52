"""Regular expressions in time proportional to text times pattern, for every pattern.

Python's `re` backtracks and can be made to run for ever by a pattern of twenty characters. Here a
pattern becomes a small program without backtracking. Files in order of use: syntax (text to tree),
program (tree to instructions), automaton (whether it matches), captures (where it matches).
"""
