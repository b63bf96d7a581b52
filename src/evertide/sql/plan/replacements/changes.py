"""What a replacement would change in its target: the rows that come and go, as a query."""

from dataclasses import dataclass, replace

from evertide.catalog.objects import Item, ItemKind
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import ExplainReplacementPlan, SelectPlan
from evertide.sql.pretty import quote_ident, to_sql
from evertide.sql.resolve import name_of, position_of, resolve_item
from evertide.sql.syntax.command import SelectStatement
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.replacement import (
    ExplainReplacementStatement,
    ShowReplacementChangesStatement,
)
from evertide.vocab.errors import WrongObjectType

# How many rows EXPLAIN REPLACEMENT shows.
SHOWN_ROWS = 20


def plan_show_changes(
    statement: ShowReplacementChangesStatement, query: QueryContext
) -> SelectPlan:
    """Each row that would change, once, with how often more (or less) it would be there."""
    changes = _changes(_replacement(statement.name, query), query)
    return replace(_select(changes.rows(statement.limit), query), tag="SHOW")


def plan_explain_replacement(
    statement: ExplainReplacementStatement, query: QueryContext
) -> ExplainReplacementPlan:
    """The same in few words: how much would change, and some of it."""
    replacement = _replacement(statement.name, query)
    changes = _changes(replacement, query)
    return ExplainReplacementPlan(
        replacement_id=replacement.item_id,
        totals=_select(changes.totals(), query),
        rows=_select(changes.rows(SHOWN_ROWS, as_text=True), query),
    )


def _replacement(name: Name, query: QueryContext) -> Item:
    found = resolve_item(name, query.plan.names)
    if found.kind is not ItemKind.MATERIALIZED_VIEW or found.replacement is None:
        raise WrongObjectType(
            f"{found.kind.sql_words} {found.name} is not a replacement materialized view",
            position=position_of(name.at),
        )
    return found


@dataclass(frozen=True, slots=True)
class _Changes:
    """A query over the difference; columns are c0, c1, ... until they are shown."""

    union: str
    columns: tuple[str, ...]

    def _grouped(self) -> str:
        places = [f"c{i}" for i in range(len(self.columns))]
        by = f" GROUP BY {', '.join(places)}" if places else ""
        heads = ", ".join(["sum(d)::int8 AS diff", *places])
        named = ", ".join(["d", *places])
        return f"SELECT {heads} FROM ({self.union}) AS u ({named}){by} HAVING sum(d) <> 0"

    def rows(self, limit: int | None, *, as_text: bool = False) -> str:
        """Ordered by the row, so that what goes stands beside what comes for it."""
        cast = "::text" if as_text else ""
        shown = [f"c{i}{cast} AS {quote_ident(name)}" for i, name in enumerate(self.columns)]
        heads = ", ".join(["diff AS mz_diff", *shown])
        order = ", ".join([*(f"c{i}" for i in range(len(self.columns))), "diff"])
        text = f"SELECT {heads} FROM ({self._grouped()}) AS g ORDER BY {order}"
        return text if limit is None else f"{text} LIMIT {limit}"

    def totals(self) -> str:
        """How many rows come, and how many go."""
        added = "coalesce(sum(diff) FILTER (WHERE diff > 0), 0)::int8"
        removed = "coalesce(sum(-diff) FILTER (WHERE diff < 0), 0)::int8"
        return f"SELECT {added}, {removed} FROM ({self._grouped()}) AS g"


def _changes(replacement: Item, query: QueryContext) -> _Changes:
    """New columns are NULL in the rows of before."""
    assert replacement.replacement is not None, "the caller has looked"
    snapshot = query.plan.snapshot
    target = snapshot.items[replacement.replacement.target]
    added = "".join([", NULL"] * (replacement.desc.arity - target.desc.arity))
    new, old = (to_sql(Name(name_of(one, snapshot).parts)) for one in (replacement, target))
    union = f"SELECT 1, n.* FROM {new} AS n UNION ALL SELECT -1, o.*{added} FROM {old} AS o"
    return _Changes(union, replacement.desc.names)


def _select(sql: str, query: QueryContext) -> SelectPlan:
    parsed = parse_statement(sql)
    assert isinstance(parsed, SelectStatement), "made as a query"
    planned = query.plan_query(parsed.query, query)
    return SelectPlan(planned.relation, planned.finishing, planned.desc)
