"""REQUIRE INCREMENTAL: what would be computed anew with every change is refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evertide.expr.recursion import is_recursive
from evertide.expr.relation import Relation
from evertide.sql.plan.context import QueryContext
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import BooleanLiteral
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import FeatureNotSupported, InvalidParameterValue

REQUIRE_INCREMENTAL: Final = "REQUIRE INCREMENTAL"


def with_requirement(options: Sequence[Option], query: QueryContext) -> QueryContext:
    """The context as the statement's own option wants it; else as the session does."""
    for option in options:
        if option.name == REQUIRE_INCREMENTAL:
            if not isinstance(option.value, BooleanLiteral | None):
                raise InvalidParameterValue(
                    f"invalid {REQUIRE_INCREMENTAL}: it is true or false",
                    position=position_of(option.at),
                )
            wanted = option.value is None or option.value.value
            query = replace(query, plan=replace(query.plan, require_incremental=wanted))
    return query


def check_incremental(relation: Relation, what: str, query: QueryContext, at: int) -> None:
    """Refuse a relation, its views inlined, that cannot be followed change by change."""
    if query.plan.require_incremental and is_recursive(relation):
        raise FeatureNotSupported(
            f"the {what} would recompute: WITH MUTUALLY RECURSIVE is not incremental",
            hint="It is refused by REQUIRE INCREMENTAL, or by the variable require_incremental.",
            position=position_of(at),
        )
