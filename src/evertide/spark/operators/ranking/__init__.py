"""Rows by their place in a group: top-k and threshold. regroup does it by rows, columns by columns
with ranks; prefixes keeps the first rows of large groups ready.
"""
