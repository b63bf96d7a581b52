"""SHOW CREATE: a stored definition as one row."""

from evertide.catalog.builtin.text import redacted
from evertide.catalog.objects import Cluster, ManagedCluster, UnmanagedCluster, VirtualCluster
from evertide.catalog.snapshot import Snapshot
from evertide.expr.interval_text import format_interval
from evertide.expr.relation import Constant, Finishing
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.plans import SelectPlan
from evertide.sql.pretty import quote_ident, quote_literal
from evertide.sql.resolve import name_of, position_of, resolve_cluster
from evertide.sql.shown.definitions import shown_definition
from evertide.sql.syntax.command import ShowCreateStatement
from evertide.sql.syntax.definition import ObjectKind
from evertide.vocab.datum import Interval
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT

_DESC = relation_desc(("name", TEXT), ("create_sql", TEXT))


def plan_show_create(statement: ShowCreateStatement, query: QueryContext) -> SelectPlan:
    """The full name of an object and the statement that would create it."""
    name, create_sql = _shown(statement, query)
    return _row(name, redacted(create_sql) if statement.redacted else create_sql)


def _shown(statement: ShowCreateStatement, query: QueryContext) -> tuple[str, str]:
    snapshot = query.plan.snapshot
    if statement.kind is ObjectKind.CLUSTER:
        name = statement.name.parts[0]
        cluster = resolve_cluster(name, snapshot, at=statement.name.at)
        return cluster.name, cluster_sql(cluster, snapshot)
    if statement.kind not in ITEM_KINDS:
        raise FeatureNotSupported(
            f"SHOW CREATE {statement.kind} is not supported", position=position_of(statement.at)
        )
    use = "SHOW CREATE {} to show {}"
    item = item_of_kind(statement.name, ITEM_KINDS[statement.kind], query.plan.names, use=use)
    shown = shown_definition(parse_statement(item.create_sql))
    return ".".join(name_of(item, snapshot).parts), shown


def _row(name: str, create_sql: str) -> SelectPlan:
    relation = Constant((((name, create_sql), 1),), _DESC.types)
    return SelectPlan(relation, Finishing(), _DESC)


def cluster_sql(cluster: Cluster, snapshot: Snapshot) -> str:
    """The statement that would create this cluster."""
    match cluster.variant:
        case VirtualCluster():
            options = "VIRTUAL"
        case ManagedCluster():
            options = _managed(cluster.variant)
        case UnmanagedCluster():
            replicas = ", ".join(
                f"{quote_ident(replica.name)} (SIZE = {quote_literal(replica.size or '')})"
                for replica in snapshot.replicas_of(cluster.cluster_id)
                if replica.profile_id is None and not replica.internal
            )
            options = f"REPLICAS ({replicas})"
    if cluster.workload_class is not None:
        options += f", WORKLOAD CLASS = {quote_literal(cluster.workload_class)}"
    return f"CREATE CLUSTER {_quoted(cluster.name)} ({options})"


def _managed(variant: ManagedCluster) -> str:
    """Every option, those with their usual values too; state is never compressed."""
    settings = variant.introspection
    options = {
        "EXPERIMENTAL ARRANGEMENT COMPRESSION": "false",
        "INTROSPECTION DEBUGGING": "true" if settings.debugging else "false",
        "INTROSPECTION INTERVAL": _interval(settings.interval_ms or 0),
        "MANAGED": "true",
        "REPLICATION FACTOR": str(variant.replication_factor),
        "SIZE": quote_literal(variant.size),
        "SCHEDULE": "MANUAL",
    }
    return ", ".join(f"{name} = {value}" for name, value in options.items())


def _interval(milliseconds: int) -> str:
    return f"INTERVAL {quote_literal(format_interval(Interval(0, 0, milliseconds * 1_000)))}"


def _quoted(name: str) -> str:
    """In quotes always, as definitions are stored."""
    return '"' + name.replace('"', '""') + '"'
