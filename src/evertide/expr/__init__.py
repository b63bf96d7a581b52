"""The typed tree: what a query means, with every name resolved and every cast explicit.

Promises that one tree has one meaning on every executor. Refuses to know SQL text, the catalog
(collections appear by GlobalId only) and Spark's API; a function's Spark lowering is text beside
its Python body. Files in order of use: scalar, relation, outer_columns, functions/, text_input,
text_output, recursion, heavy (what planning leaves for later), transform/, compile, interpret with
group_rows and join_rows; locality says what only the interpreter can run, argument_order makes
that less.
"""
