"""Where an expression begins in its text.

A node's own offset is that of its operator, which is where an error about the operator points. An
error about the whole expression points at its first character.
"""

from evertide.sql.syntax.expression import (
    And,
    AnyAll,
    Between,
    Binary,
    Cast,
    Collate,
    Expression,
    FieldAccess,
    InList,
    InSubquery,
    IsDistinct,
    IsTest,
    Or,
    PatternMatch,
    RowStar,
    Subscript,
)


def start_of(node: Expression) -> int:
    """The offset of the first character; parentheses around it are not part of it."""
    start = node.at
    while True:
        match node:
            case Binary(left=first) | IsDistinct(left=first) | AnyAll(left=first):
                node = first
            case And(terms=terms) | Or(terms=terms):
                node = terms[0]
            case (
                Cast(operand=first)
                | IsTest(operand=first)
                | Between(operand=first)
                | InList(operand=first)
                | InSubquery(operand=first)
                | PatternMatch(operand=first)
                | Collate(operand=first)
                | Subscript(operand=first)
                | FieldAccess(operand=first)
                | RowStar(operand=first)
            ):
                node = first
            case _:
                return start
        start = min(start, node.at)
