"""Parts of stored SQL that system relations show. Looks at quotes only; nothing is parsed here."""

import re

# In this order, so that none of them starts inside another.
_TOKEN = re.compile(
    r"""(?P<identifier>"(?:[^"]|"")*")
      | (?P<literal>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | (?<![\w$])\d[\w.]*)
      | (?P<as>\sAS\s)""",
    re.VERBOSE | re.DOTALL,
)


def query_text(create_sql: str) -> str:
    """The query of a stored CREATE VIEW or CREATE MATERIALIZED VIEW: all after its first AS.

    >>> query_text('CREATE VIEW "a AS b" AS SELECT 1 AS one')
    'SELECT 1 AS one;'
    """
    for token in _TOKEN.finditer(create_sql):
        if token.lastgroup == "as":
            return create_sql[token.end() :].rstrip(";") + ";"
    return ""


def redacted(create_sql: str) -> str:
    """The statement without the values in it.

    >>> redacted('''CREATE VIEW "v1" AS SELECT 'secret', 12.5, c1''')
    'CREATE VIEW "v1" AS SELECT \\'<REDACTED>\\', \\'<REDACTED>\\', c1'
    """
    return _TOKEN.sub(
        lambda token: "'<REDACTED>'" if token.lastgroup == "literal" else token.group(), create_sql
    )
