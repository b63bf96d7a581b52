"""CREATE MATERIALIZED VIEW ... REPLACING: whether a view may be replaced, and by this."""

from typing import Final

from evertide.catalog.objects import Item, ItemKind, Replacement
from evertide.catalog.replacements import refuse_circle
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.history import RETAIN_HISTORY
from evertide.sql.plan.replacements.schema import check_schema
from evertide.sql.resolve import Destination, position_of, resolve_item
from evertide.sql.syntax.definition import CreateMaterializedViewStatement
from evertide.sql.syntax.option import Refresh
from evertide.vocab.errors import (
    FeatureNotSupported,
    ObjectNotInPrerequisiteState,
    WrongObjectType,
)
from evertide.vocab.relation_desc import RelationDesc

APPLY_WHEN_HYDRATED: Final = "APPLY WHEN HYDRATED"


def replaced_view(statement: CreateMaterializedViewStatement, query: QueryContext) -> Item | None:
    """The view that the statement makes a replacement for; None: it makes a view of its own."""
    if statement.replacing is None:
        for option in statement.options:
            if option.name == APPLY_WHEN_HYDRATED:
                raise FeatureNotSupported(
                    f"{APPLY_WHEN_HYDRATED} is for replacements only",
                    hint="Name the materialized view to be replaced, after REPLACING.",
                    position=position_of(option.at),
                )
        return None
    target = resolve_item(statement.replacing, query.plan.names)
    at = position_of(statement.replacing.at)
    if target.kind is not ItemKind.MATERIALIZED_VIEW:
        raise WrongObjectType(
            f"cannot replace {target.kind.sql_words} {target.name} with materialized view"
            f" {statement.name.parts[-1]}",
            position=at,
        )
    if target.replacement is not None:
        raise WrongObjectType(
            f"cannot replace {target.name} because it is a replacement itself",
            hint="Apply or drop it first.",
            position=at,
        )
    if target.refresh is not None:
        raise FeatureNotSupported(
            f"cannot replace {target.name} because it is refreshed at certain times only",
            hint="Use CREATE OR REPLACE MATERIALIZED VIEW, or drop it and create it anew.",
            position=at,
        )
    for option in statement.options:
        if isinstance(option.value, Refresh) and option.value.kind != "ON COMMIT":
            raise FeatureNotSupported(
                "REFRESH is not supported for replacements", position=position_of(option.at)
            )
        if option.name == RETAIN_HISTORY:
            raise FeatureNotSupported(
                "RETAIN HISTORY is not supported for replacements: they keep their target's",
                hint=f"Use ALTER MATERIALIZED VIEW {target.name} SET (RETAIN HISTORY FOR ...).",
                position=position_of(option.at),
            )
    return target


def check_replacement(
    target: Item,
    statement: CreateMaterializedViewStatement,
    destination: Destination,
    desc: RelationDesc,
    query: QueryContext,
) -> Replacement:
    """What the catalog keeps of a replacement, if it may take the view's place."""
    snapshot = query.plan.snapshot
    refuse_circle(snapshot, target, query.dependencies)
    other = snapshot.replacement_of(target.item_id)
    same = other is not None and (other.schema_id, other.name) == (
        destination.schema.schema_id,
        destination.name,
    )
    if other is not None and not (same and statement.if_not_exists):
        raise ObjectNotInPrerequisiteState(
            f"cannot replace {target.name} because it already has a replacement: {other.name}",
            hint="Apply or drop that one first.",
        )
    check_schema(target.desc, desc)
    automatic = any(option.name == APPLY_WHEN_HYDRATED for option in statement.options)
    return Replacement(target=target.item_id, apply_when_ready=automatic)
