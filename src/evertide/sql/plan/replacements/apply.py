"""ALTER MATERIALIZED VIEW ... APPLY REPLACEMENT."""

from evertide.catalog.objects import Item, ItemKind
from evertide.catalog.replacement_ops import SetApplyWhenReadyOp
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import item_of_kind
from evertide.sql.plan.plans import NoticePlan
from evertide.sql.plan.replacements.plans import ApplyReplacementPlan
from evertide.sql.plan.replacements.texts import applied_text
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs
from evertide.sql.resolve import position_of, resolve_item
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.replacement import ApplyReplacementStatement
from evertide.vocab.errors import Notice, UndefinedTable, WrongObjectType

TAG = "ALTER MATERIALIZED VIEW"


def plan_apply_replacement(
    statement: ApplyReplacementStatement, query: QueryContext
) -> ApplyReplacementPlan | RolePlan | NoticePlan:
    """The view under its new definition: now, or with WHEN READY as soon as it can be."""
    names, snapshot = query.plan.names, query.plan.snapshot
    try:
        target = item_of_kind(statement.name, ItemKind.MATERIALIZED_VIEW, names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        return NoticePlan(TAG, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    replacement = _replacement(statement.replacement, target, query)
    if statement.when_ready:
        op = SetApplyWhenReadyOp(
            replacement_id=replacement.item_id, forward_time=statement.forward_time
        )
        owned = (("item", target.item_id), ("item", replacement.item_id))
        return RolePlan(TAG, (op,), Needs(owner_of=owned))
    return ApplyReplacementPlan(
        item_id=target.item_id,
        replacement_id=replacement.item_id,
        create_sql=applied_text(target, replacement, snapshot),
        forward_time=statement.forward_time,
    )


def _replacement(name: Name, target: Item, query: QueryContext) -> Item:
    found = resolve_item(name, query.plan.names)
    if found.kind is not ItemKind.MATERIALIZED_VIEW:
        article = "an" if found.kind is ItemKind.INDEX else "a"
        raise WrongObjectType(
            f"{found.name} is {article} {found.kind.sql_words} not a materialized view",
            position=position_of(name.at),
        )
    meant = None if found.replacement is None else found.replacement.target
    if meant != target.item_id:
        detail = f"Materialized view {found.name} is no replacement."
        if meant is not None:
            other = query.plan.snapshot.items[meant].name
            detail = f"Materialized view {found.name} is a replacement for {other}."
        raise WrongObjectType(
            f"cannot replace {target.kind.sql_words} {target.name} with materialized view"
            f" {found.name}",
            detail=detail,
            position=position_of(name.at),
        )
    return found
