"""The function table: one row per function, its types, Python body and Spark lowering side by side.

`row` says what a row is; one file per family holds rows; `table` finds them by name.
"""
