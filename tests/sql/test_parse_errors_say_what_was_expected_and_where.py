"""A text that is not SQL is refused with what was expected, what stood there, and its position."""

import pytest

from evertide.sql.parser.entry import parse_expression, parse_statement, parse_statements
from evertide.vocab.errors import FeatureNotSupported, SqlSyntaxError


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("SELECT 1 2", 'Expected end of statement, found number "2"', 10),
        ("SELECT a b c", 'Expected end of statement, found identifier "c"', 12),
        ("SELECT 1)", "Expected end of statement, found right parenthesis", 9),
        ("SELECT (1", "Expected right parenthesis, found EOF", 10),
        ("SELECT (1;", "Expected right parenthesis, found semicolon", 10),
        ("SELECT 1 +", "Expected an expression, found EOF", 11),
        ("SELECT a, FROM t", "Expected an expression, found FROM", 11),
        ("SELECT f(a,)", "Expected an expression, found right parenthesis", 12),
        ("SELECT a IN ()", "Expected an expression, found right parenthesis", 14),
        ("SELECT * * 1", "Expected end of statement, found star", 10),
        ("SELECT a FROM 1", 'Expected identifier, found number "1"', 15),
        ("SELECT a FROM 'x'", 'Expected identifier, found string literal "x"', 15),
        ("SELECT a FROM $1", 'Expected identifier, found parameter "$1"', 15),
        ("SELECT a FROM + t", 'Expected identifier, found operator "+"', 15),
        ("SELECT a FROM (t)", "Expected joined table, found right parenthesis", 17),
        ("SELECT a FROM t JOIN u", "Expected one of ON or USING, found EOF", 23),
        ("SELECT a FROM t GROUP a", 'Expected BY, found identifier "a"', 23),
        ("SELECT CASE a END", "Expected WHEN, found END", 15),
        ("SELECT CAST(a AS)", "Expected a data type name, found right parenthesis", 17),
        ("SELECT a BETWEEN 1", "Expected AND, found EOF", 19),
        ("SELECT DEFAULT", "Expected an expression, found DEFAULT", 8),
        ("SELECT $0", 'Expected a parameter between $1 and $65535, found parameter "$0"', 8),
        ("SELECT ARRAY[1", "Expected right square bracket, found EOF", 15),
        (
            "SELECT 1 UNION",
            "Expected SELECT, VALUES, or a subquery in the query body, found EOF",
            15,
        ),
        ("WITH a AS SELECT 1", "Expected left parenthesis, found SELECT", 11),
        ("VALUES (1), (1, 2)", "VALUES lists must all be the same length", 13),
        ("INSERT INTO t VALUES 1", 'Expected left parenthesis, found number "1"', 22),
        ("INSERT t", 'Expected INTO, found identifier "t"', 8),
        ("UPDATE t SET a 1", 'Expected equals sign, found number "1"', 16),
        ("DELETE t", 'Expected FROM, found identifier "t"', 8),
        ("CREATE TABLE t", "Expected left parenthesis, found EOF", 15),
        (
            "CREATE TABLE t (a int,)",
            "Expected column name or constraint definition, found right parenthesis",
            23,
        ),
        ("CREATE TEMP INDEX i", "Expected one of TABLE or VIEW, found INDEX", 13),
        ("CREATE INDEX i ON t", "Expected left parenthesis, found EOF", 20),
        ("CREATE CLUSTER c SIZE =", "Expected option value, found EOF", 24),
        ("CREATE CLUSTER PROFILE p", "Expected dot, found EOF", 25),
        ("CREATE CLUSTER REPLICA c.r SIZE '1' IN CLUSTER d", "Expected PROFILE, found CLUSTER", 40),
        ("CREATE CLUSTER REPLICA c.r SIZE '1',", "Expected an option, found EOF", 37),
        (
            "ALTER CLUSTER PROFILE c.p SIZE '1'",
            "Expected one of OWNER or RENAME or RESET or SET, found SIZE",
            27,
        ),
        ("CREATE CLUSTER REPLICA r", "Expected dot, found EOF", 25),
        ("DROP CLUSTER a.b", "Expected end of statement, found dot", 15),
        ("ALTER TABLE t RENAME a", 'Expected TO, found identifier "a"', 22),
        (
            "ALTER CLUSTER c FOO",
            'Expected one of OWNER or RENAME or RESET or SET or SWAP, found identifier "foo"',
            17,
        ),
        ("SHOW COLUMNS", "Expected one of FROM or IN, found EOF", 13),
        ("SHOW TABLES LIKE x", 'Expected string literal, found identifier "x"', 18),
        ("SET x", "Expected equals sign or TO, found EOF", 6),
        ("BEGIN FOO", 'Expected transaction mode, found identifier "foo"', 7),
        ("SET TRANSACTION ISOLATION LEVEL x", 'Expected isolation level, found identifier "x"', 33),
        ("EXPLAIN TIMESTAMP SELECT 1", "Expected FOR, found SELECT", 19),
        ("COPY t TO 'file'", 'Expected STDOUT, found string literal "file"', 11),
        ("Foo", 'Expected a keyword at the beginning of a statement, found identifier "foo"', 1),
        ("; 1", 'Expected a keyword at the beginning of a statement, found number "1"', 3),
        (
            "SELECT 1 GROUP BY 1 OPTIONS (EXPECTED GROUP SIZE = 'x')",
            "invalid EXPECTED GROUP SIZE: cannot use value as number",
            52,
        ),
        ("SELECT 1 LIMIT 1 OFFSET 1 LIMIT 2", "multiple LIMIT/FETCH clauses not allowed", 27),
        ("SELECT 1 OFFSET 1 OFFSET 2", "multiple OFFSET clauses not allowed", 19),
        ("VACUUM", "Unexpected keyword VACUUM at the beginning of a statement", 1),
        ("SELECT 1; SELECT é FROM", "Expected identifier, found EOF", 24),
    ],
)
def test_a_mistake_is_named_and_placed(text: str, message: str, position: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statements(text)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_a_long_token_is_cut_short_in_the_message() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statements("SELECT 1 '" + "x" * 10_000 + "'")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("column", "constraint"),
    [("a int REFERENCES t", "FOREIGN KEY"), ("CONSTRAINT x CHECK (a)", "CHECK")],
)
def test_constraints_that_would_not_be_kept_are_refused_by_name(
    column: str, constraint: str
) -> None:
    with pytest.raises(FeatureNotSupported, match=f"{constraint} constraints are not supported"):
        parse_statement(f"CREATE TABLE t ({column})")


@pytest.mark.parametrize("text", ["", ";", "SELECT 1; SELECT 2"])
def test_one_statement_means_exactly_one(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="expected exactly one statement"):
        parse_statement(text)


def test_an_expression_must_fill_its_text() -> None:
    with pytest.raises(SqlSyntaxError, match="Expected end of expression, found comma"):
        parse_expression("a, b")
