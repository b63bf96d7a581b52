"""ALTER MATERIALIZED VIEW ... RESTORE VERSION: an earlier definition, staged as a replacement."""

from dataclasses import replace

from evertide.catalog.objects import Item, ItemKind, ItemVersion, MaterializedView, PastVersion
from evertide.catalog.snapshot import Snapshot
from evertide.sql.kept_meaning import keeps_meaning
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.define import plan_create_materialized_view
from evertide.sql.plan.drop import item_of_kind
from evertide.sql.plan.history import RETAIN_HISTORY
from evertide.sql.plan.names_of_today import renamings
from evertide.sql.plan.plans import CreateMaterializedViewPlan, NoticePlan
from evertide.sql.plan.replacements.apply import TAG
from evertide.sql.plan.replacements.texts import definition_of
from evertide.sql.pretty import quote_ident, to_sql
from evertide.sql.renaming import with_relations
from evertide.sql.resolve import Recall, name_of
from evertide.sql.syntax.command import SelectStatement
from evertide.sql.syntax.definition import CreateMaterializedViewStatement
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.query import Query
from evertide.sql.syntax.replacement import RestoreVersionStatement
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    Notice,
    ObjectNotInPrerequisiteState,
    UndefinedObject,
    UndefinedTable,
)
from evertide.vocab.ids import ItemId


def plan_restore_version(
    statement: RestoreVersionStatement, query: QueryContext
) -> CreateMaterializedViewPlan | NoticePlan:
    """The earlier definition as a replacement `<view>_version_<n>`, to be applied like any."""
    try:
        item = item_of_kind(statement.name, ItemKind.MATERIALIZED_VIEW, query.plan.names)
    except UndefinedTable as error:
        if not statement.if_exists:
            raise
        return NoticePlan(TAG, (Notice("NOTICE", "00000", f"{error.message}, skipping"),))
    number = statement.version
    past = _past(item, number)
    snapshot = query.plan.snapshot
    *schema, name = name_of(item, snapshot).parts
    before = _with_names_of_today(definition_of(past.create_sql), past, item, number, snapshot)
    staged = replace(
        before,
        name=Name((*schema, f"{name}_version_{number}")),
        replacing=Name((*schema, name)),
        cluster=_cluster(past, item, snapshot),
        options=tuple(one for one in before.options if one.name != RETAIN_HISTORY),
    )
    version = item.version(past.global_id)
    if version.desc.arity < item.desc.arity:
        staged = replace(staged, query=_widened(staged, version, item), columns=())
    # A star in it means the columns that there were.
    recalled = replace(query.plan, recall=Recall(past.planned_against))
    plan = plan_create_materialized_view(staged, replace(query, plan=recalled))
    return replace(plan, tag=TAG, planned_against=past.planned_against)


def _past(item: Item, number: int) -> PastVersion:
    assert isinstance(item.definition, MaterializedView), "checked by its kind"
    past = item.definition.past
    if number == len(item.versions):
        raise ObjectNotInPrerequisiteState(
            f'version {number} is the current one of materialized view "{item.name}"'
        )
    if not 1 <= number <= len(past):
        raise UndefinedObject(
            f'materialized view "{item.name}" has no version {number}',
            hint="Its versions are listed in mz_internal.mz_materialized_view_versions.",
        )
    return past[number - 1]


def _with_names_of_today(
    before: CreateMaterializedViewStatement,
    past: PastVersion,
    item: Item,
    number: int,
    snapshot: Snapshot,
) -> CreateMaterializedViewStatement:
    """What it read may have been renamed since, or be gone: another of its name is not meant."""
    meant = {named.name: named.item_id for named in past.names}

    def today(item_id: ItemId) -> tuple[str, ...]:
        found = snapshot.items.get(item_id)
        if found is None:
            parts = next(parts for parts, named in meant.items() if named == item_id)
            raise UndefinedTable(
                f'version {number} of materialized view "{item.name}" reads'
                f" {'.'.join(parts)}, which was dropped"
            )
        return name_of(found, snapshot).parts

    relation, column = renamings(meant, today)
    renamed = replace(before, query=with_relations(before.query, relation, column))
    if not keeps_meaning(before, renamed):
        raise DependentObjectsStillExist(
            f'renaming conflict: in version {number} of materialized view "{item.name}", whose'
            " relations have other names now, a column would be ambiguous",
            hint="Rename what it reads so that its schemas and names differ.",
        )
    return renamed


def _cluster(past: PastVersion, item: Item, snapshot: Snapshot) -> str:
    """Where it ran, or if that cluster is gone where the view runs now."""
    assert item.cluster_id is not None, "a materialized view runs in a cluster"
    found = snapshot.clusters.get(past.cluster_id) or snapshot.clusters[item.cluster_id]
    return found.name


def _widened(staged: CreateMaterializedViewStatement, version: ItemVersion, item: Item) -> Query:
    """Columns that came later stay, for those who read them by now; they are NULL."""
    added = item.desc.columns[version.desc.arity :]
    nulls = [f"NULL::{column.type} AS {quote_ident(column.name)}" for column in added]
    names = ", ".join(quote_ident(name) for name in version.desc.names)
    heads = ", ".join(["before.*", *nulls])
    parsed = parse_statement(f"SELECT {heads} FROM ({to_sql(staged.query)}) AS before ({names})")
    assert isinstance(parsed, SelectStatement), "made as a query"
    return parsed.query
