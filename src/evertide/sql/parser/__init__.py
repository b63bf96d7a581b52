"""Text to statement tree.

entry.py is what other rooms call. cursor.py walks the tokens and owns the limits on depth;
names.py, objects.py and type_name.py read names and types. Expressions and queries hold each
other, so expression.py, primary.py, call.py, query.py, from_clause.py and show.py import each
other as modules; precedence.py is their table of operators. The other files hold one family of
statements each: dml.py, create.py, alter.py, cluster.py, role.py, source.py, sink.py, session.py,
explain.py, portal.py, stream.py; option.py reads the option lists they share. literal_rows.py is
the quick path for long VALUES and IN lists, most of which literal_json.py turns into JSON;
pieces.py cuts a text at such lists.

The room promises that a text is either read wholly or refused with a position: nothing is skipped,
and no statement it does not know is passed on. It refuses to know what names mean.
"""
