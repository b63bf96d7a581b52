"""Statement tree to text, on one line.

pretty.py is what other rooms call. names.py quotes; expression.py and query.py print what a SELECT
is made of; option.py, show.py, definition.py and command.py the rest.

The promise: parsing the text gives an equal tree. So a name is quoted wherever the parser could
take it for something else, and parentheses stand exactly where precedence asks for them.
"""
