"""Delta plans as Spark SQL texts.

Promises text that holds nothing a user wrote: columns go by position, literals are bound
parameters, functions are rows of the function table. Nothing here runs Spark. Files in order of
use: text (what a text is made of), keys (equality, order, identity of columns), scalar, linear,
join, reduce, top_k, relation (a plan's contents at one timestamp), delta (a plan's tick).
"""
