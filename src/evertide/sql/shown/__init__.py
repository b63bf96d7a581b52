"""Definitions as SHOW CREATE prints them: broken into lines where one would be too long.

`layout` breaks lines and knows no SQL, `queries` and `definitions` say where a break may be, and
`full_types` names every type by its schema.
"""
