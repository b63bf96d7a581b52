"""Random statements, of the shapes that the parser can build."""

from collections.abc import Callable
from random import Random
from typing import Final

from evertide.sql.syntax import cluster as k
from evertide.sql.syntax import command as c
from evertide.sql.syntax import definition as d
from evertide.sql.syntax import expression as e
from evertide.sql.syntax import option as o
from evertide.sql.syntax import query as q
from evertide.sql.syntax.statement import Statement
from tests.sql.parse_external_trees import external
from tests.sql.parse_named_trees import named_statement
from tests.sql.parse_replacement_trees import replacement_statement
from tests.sql.parse_role_trees import role_statement
from tests.sql.parse_trees import (
    columns,
    data_type,
    expression,
    expressions,
    flag,
    identifier,
    maybe,
    name,
    number,
    order_by,
    query,
    select_item,
    some,
    string,
    table,
    text,
)

_SMALL: Final = 2
_ONE_PART: Final = (d.ObjectKind.CLUSTER, d.ObjectKind.DATABASE, d.ObjectKind.ROLE)
_RETAINING = (d.ObjectKind.TABLE, d.ObjectKind.MATERIALIZED_VIEW, d.ObjectKind.INDEX)
_MOVABLE: Final = (d.ObjectKind.MATERIALIZED_VIEW, d.ObjectKind.INDEX, d.ObjectKind.SINK)

_PLACED: Final = (*_MOVABLE, d.ObjectKind.TABLE, d.ObjectKind.TYPE, d.ObjectKind.SECRET)


def plain_name(rng: Random) -> e.Name:
    return e.Name((identifier(rng),))


def cluster(rng: Random) -> str | None:
    return maybe(rng, lambda: identifier(rng))


def scalar(rng: Random) -> o.OptionValue:
    choices: list[o.OptionValue] = [
        string(rng),
        number(rng),
        e.BooleanLiteral(flag(rng)),
        e.NullLiteral(),
        plain_name(rng),
        e.TypedLiteral(e.TypeName(("interval",), (), "HOUR"), text(rng)),
    ]
    return rng.choice(choices)


def option_value(rng: Random) -> o.OptionValue:
    if rng.random() < 0.3:
        return o.OptionItems(some(rng, lambda: scalar(rng)))
    return scalar(rng)


def options(rng: Random, *makers: Callable[[], o.Option], least: int = 0) -> tuple[o.Option, ...]:
    return some(rng, lambda: rng.choice(makers)(), least, 3)


def replica_options(rng: Random) -> tuple[o.Option, ...]:
    return options(
        rng,
        lambda: o.Option("SIZE", option_value(rng)),
        lambda: o.Option("BILLED AS", string(rng)),
        lambda: o.Option("INTERNAL", maybe(rng, lambda: scalar(rng))),
    )


def cluster_options(rng: Random, least: int = 0) -> tuple[o.Option, ...]:
    return options(
        rng,
        lambda: o.Option("VIRTUAL"),
        lambda: o.Option("SIZE", string(rng)),
        lambda: o.Option("REPLICATION FACTOR", number(rng)),
        lambda: o.Option("MANAGED", maybe(rng, lambda: option_value(rng))),
        lambda: o.Option("AVAILABILITY ZONES", option_value(rng)),
        lambda: o.Option("REPLICAS", o.ReplicaDefinitions(some(rng, lambda: _replica(rng)))),
        lambda: o.Option("SCHEDULE", o.OptionGroup("MANUAL")),
        lambda: o.Option("SCHEDULE", _on_refresh(rng)),
        lambda: o.Option("AUTO SCALING STRATEGY", _on_hydration(rng)),
        least=least,
    )


def profile_options(rng: Random, least: int = 0) -> tuple[o.Option, ...]:
    return options(
        rng,
        lambda: o.Option("SIZE", string(rng)),
        lambda: o.Option("MANAGED", maybe(rng, lambda: option_value(rng))),
        lambda: o.Option("BILLED AS", string(rng)),
        lambda: o.Option("BILLED", maybe(rng, lambda: scalar(rng))),
        lambda: o.Option("EXPIRES AFTER", option_value(rng)),
        lambda: o.Option("REPLICAS", o.ReplicaDefinitions(some(rng, lambda: _replica(rng)))),
        least=least,
    )


def in_cluster_statement(rng: Random) -> Statement:
    """Statements about replicas and profiles."""
    place = (identifier(rng), identifier(rng))
    makers: list[Callable[[], Statement]] = [
        lambda: d.CreateClusterReplicaStatement(
            *place, replica_options(rng), flag(rng), maybe(rng, lambda: identifier(rng))
        ),
        lambda: k.CreateClusterProfileStatement(*place, profile_options(rng), flag(rng)),
        lambda: k.AlterClusterProfileSetStatement(*place, profile_options(rng, 1), flag(rng)),
        lambda: k.AlterClusterProfileResetStatement(*place, ("BILLED AS", "BILLED"), flag(rng)),
        lambda: k.MoveReplicaStatement(*place, identifier(rng), flag(rng)),
    ]
    return rng.choice(makers)()


def _replica(rng: Random) -> o.ReplicaDefinition:
    return o.ReplicaDefinition(identifier(rng), replica_options(rng))


def _on_refresh(rng: Random) -> o.OptionGroup:
    estimate = o.Option("HYDRATION TIME ESTIMATE", string(rng))
    return o.OptionGroup("ON REFRESH", some(rng, lambda: estimate, 0, 1))


def _on_hydration(rng: Random) -> o.OptionGroup:
    return o.OptionGroup("ON HYDRATION", (o.Option("LINGER DURATION", option_value(rng)),))


def wait_options(rng: Random) -> tuple[o.Option, ...]:
    duration = o.OptionGroup("FOR", (o.Option("DURATION", option_value(rng)),))
    ready = o.OptionGroup(
        "UNTIL READY", (o.Option("TIMEOUT", scalar(rng)), o.Option("ON TIMEOUT", plain_name(rng)))
    )
    return options(rng, lambda: o.Option("WAIT", rng.choice([duration, ready])))


def view_options(rng: Random) -> tuple[o.Option, ...]:
    def moment() -> e.Expression:
        return expression(rng, 1)

    return options(
        rng,
        lambda: o.Option("ASSERT NOT NULL", plain_name(rng)),
        lambda: o.Option("PARTITION BY", option_value(rng)),
        lambda: o.Option("RETAIN HISTORY", option_value(rng)),
        lambda: o.Option("REFRESH", o.Refresh("ON COMMIT")),
        lambda: o.Option("REFRESH", o.Refresh("AT CREATION")),
        lambda: o.Option("REFRESH", o.Refresh("AT", moment())),
        lambda: o.Option("REFRESH", o.Refresh("EVERY", string(rng), maybe(rng, moment))),
    )


def retained(rng: Random) -> tuple[o.Option, ...]:
    return options(rng, lambda: o.Option("RETAIN HISTORY", option_value(rng)))


def object_name(rng: Random, kind: d.ObjectKind) -> e.Name:
    if kind in (d.ObjectKind.CLUSTER_REPLICA, d.ObjectKind.CLUSTER_PROFILE):
        return e.Name((identifier(rng), identifier(rng)))
    return plain_name(rng) if kind in _ONE_PART else name(rng)


def _column(rng: Random) -> d.ColumnDefinition:
    return d.ColumnDefinition(
        identifier(rng),
        data_type(rng),
        flag(rng),
        maybe(rng, lambda: expression(rng, _SMALL)),
        maybe(rng, lambda: name(rng)),
    )


def _key(rng: Random) -> d.TableKey:
    names = some(rng, lambda: identifier(rng), 1)
    return d.TableKey(names, flag(rng), maybe(rng, lambda: identifier(rng)))


def create_view(rng: Random) -> d.CreateViewStatement:
    replace = flag(rng)
    exists = not replace and flag(rng)
    found = query(rng, _SMALL)
    return d.CreateViewStatement(name(rng), found, columns(rng), replace, exists, flag(rng))


def create_materialized_view(rng: Random) -> d.CreateMaterializedViewStatement:
    replace = flag(rng)
    return d.CreateMaterializedViewStatement(
        name(rng),
        query(rng, _SMALL),
        columns(rng),
        cluster(rng),
        view_options(rng),
        replace,
        not replace and flag(rng),
        None if replace else maybe(rng, lambda: name(rng)),
    )


def create_index(rng: Random) -> d.CreateIndexStatement:
    default = flag(rng)
    return d.CreateIndexStatement(
        maybe(rng, lambda: identifier(rng)),
        name(rng),
        () if default else expressions(rng, _SMALL, 1),
        cluster(rng),
        maybe(rng, lambda: identifier(rng)),
        default,
        flag(rng),
        retained(rng),
    )


def definition(rng: Random) -> Statement:
    kind = rng.choice(list(d.ObjectKind))
    # Roles have neither an owner nor, once created, another name.
    owned = d.ObjectKind.TABLE if kind is d.ObjectKind.ROLE else kind
    makers: list[Callable[[], Statement]] = [
        lambda: role_statement(rng),
        lambda: replacement_statement(rng),
        lambda: named_statement(rng),
        lambda: d.CreateTableStatement(
            name(rng),
            some(rng, lambda: _column(rng)),
            flag(rng),
            flag(rng),
            retained(rng),
            some(rng, lambda: _key(rng)),
        ),
        lambda: create_view(rng),
        lambda: create_materialized_view(rng),
        lambda: create_index(rng),
        lambda: external(rng),
        lambda: d.CreateClusterStatement(identifier(rng), cluster_options(rng), flag(rng)),
        lambda: in_cluster_statement(rng),
        lambda: d.CreateSchemaStatement(name(rng), flag(rng)),
        lambda: d.CreateDatabaseStatement(identifier(rng), flag(rng)),
        lambda: d.CreateRoleStatement(identifier(rng), rng.choice([(), ("LOGIN", "NOSUPERUSER")])),
        lambda: d.DropStatement(
            kind, some(rng, lambda: object_name(rng, kind), 1), flag(rng), flag(rng)
        ),
        lambda: d.RenameStatement(owned, object_name(rng, owned), identifier(rng), flag(rng)),
        lambda: d.AlterOwnerStatement(owned, object_name(rng, owned), identifier(rng), flag(rng)),
        lambda: d.AlterSetClusterStatement(
            rng.choice(_MOVABLE), name(rng), identifier(rng), flag(rng)
        ),
        lambda: d.AlterSetSchemaStatement(
            rng.choice(_PLACED), name(rng), identifier(rng), flag(rng)
        ),
        lambda: d.AlterHistoryStatement(
            rng.choice(_RETAINING), name(rng), maybe(rng, lambda: option_value(rng)), flag(rng)
        ),
        lambda: d.SwapStatement(d.ObjectKind.SCHEMA, name(rng), identifier(rng)),
        lambda: d.SwapStatement(d.ObjectKind.CLUSTER, plain_name(rng), identifier(rng)),
        lambda: d.AlterClusterSetStatement(
            identifier(rng), cluster_options(rng, 1), wait_options(rng), flag(rng)
        ),
        lambda: d.AlterClusterSetStatement(identifier(rng), ()),
        lambda: d.AlterClusterResetStatement(identifier(rng), ("SIZE", "REPLICATION FACTOR")),
    ]
    return rng.choice(makers)()


def as_of(rng: Random) -> c.AsOf | None:
    return maybe(rng, lambda: c.AsOf(expression(rng, _SMALL), flag(rng)))


def select(rng: Random) -> c.SelectStatement:
    return c.SelectStatement(query(rng, _SMALL), as_of(rng))


def subscribe(rng: Random) -> c.SubscribeStatement:
    output: list[c.EnvelopeOutput | c.WithinTimestampOutput | None] = [
        None,
        c.EnvelopeOutput("UPSERT", columns(rng, 1)),
        c.EnvelopeOutput("DEBEZIUM", columns(rng, 1)),
        c.WithinTimestampOutput(order_by(rng, 1, 1)),
    ]
    snapshot = o.Option("SNAPSHOT", maybe(rng, lambda: scalar(rng)))
    return c.SubscribeStatement(
        name(rng) if flag(rng) else query(rng, _SMALL),
        rng.choice(output),
        options(rng, lambda: o.Option("PROGRESS"), lambda: snapshot),
        as_of(rng),
        maybe(rng, lambda: expression(rng, 1)),
    )


def _cell(rng: Random) -> e.Expression:
    return e.DefaultValue() if rng.random() < 0.3 else expression(rng, _SMALL)


def write(rng: Random) -> c.InsertStatement | c.UpdateStatement | c.DeleteStatement:
    returning = some(rng, lambda: select_item(rng, 1))
    where = maybe(rng, lambda: expression(rng, _SMALL))
    alias = maybe(rng, lambda: identifier(rng))
    tables = some(rng, lambda: table(rng, 1))
    kind = rng.randrange(4)
    if kind == 0:
        row = some(rng, lambda: _cell(rng), 1, 3)
        source = rng.choice([None, query(rng, _SMALL), q.Query(q.Values((row,)))])
        return c.InsertStatement(name(rng), columns(rng), source, returning)
    if kind == 1:
        pairs = some(rng, lambda: c.Assignment(identifier(rng), _cell(rng)), 1)
        return c.UpdateStatement(name(rng), pairs, alias, tables, where, returning)
    return c.DeleteStatement(name(rng), alias, tables, where, returning)


def preparable(rng: Random) -> c.Preparable:
    makers: list[Callable[[Random], c.Preparable]] = [select, subscribe, write]
    return rng.choice(makers)(rng)


def variable(rng: Random) -> str:
    return ".".join(some(rng, lambda: identifier(rng).replace(".", "_"), 1))


def _values(rng: Random) -> tuple[str, ...] | None:
    return maybe(rng, lambda: some(rng, lambda: text(rng), 1))


def modes(rng: Random) -> c.TransactionModes:
    level = rng.choice([None, "serializable", "strict serializable", "read committed"])
    return c.TransactionModes(
        level, rng.choice([None, True, False]), rng.choice([None, True, False])
    )


def show(rng: Random) -> Statement:
    kind = rng.choice(list(d.ObjectKind))
    filter_ = rng.choice([None, c.LikeFilter(text(rng)), c.WhereFilter(expression(rng, 1))])
    from_ = maybe(rng, lambda: name(rng))
    in_schema = rng.choice([c.ShowKind.TABLES, c.ShowKind.OBJECTS, c.ShowKind.SCHEMAS])
    in_cluster = rng.choice([c.ShowKind.MATERIALIZED_VIEWS, c.ShowKind.SINKS])
    nowhere = rng.choice(
        [
            c.ShowKind.CLUSTERS,
            c.ShowKind.CLUSTER_REPLICAS,
            c.ShowKind.CLUSTER_PROFILES,
            c.ShowKind.ROLES,
        ]
    )
    makers: list[Callable[[], Statement]] = [
        lambda: c.ShowObjectsStatement(in_schema, from_, filter_=filter_),
        lambda: c.ShowObjectsStatement(in_cluster, from_, None, cluster(rng), filter_),
        lambda: c.ShowObjectsStatement(nowhere, filter_=filter_),
        lambda: c.ShowObjectsStatement(c.ShowKind.COLUMNS, name(rng), filter_=filter_),
        lambda: c.ShowObjectsStatement(
            c.ShowKind.INDEXES, from_, maybe(rng, lambda: name(rng)), cluster(rng), filter_
        ),
        lambda: c.ShowCreateStatement(kind, object_name(rng, kind), flag(rng)),
        lambda: c.ShowVariableStatement(maybe(rng, lambda: variable(rng))),
    ]
    return rng.choice(makers)()


def explain(rng: Random) -> Statement:
    formats: list[c.ExplainFormat | None] = [None, "TEXT", "VERBOSE TEXT", "JSON"]
    format_ = rng.choice(formats)
    if rng.random() < 0.2:
        return c.ExplainTimestampStatement(select(rng), format_)
    kind = rng.choice([d.ObjectKind.VIEW, d.ObjectKind.MATERIALIZED_VIEW, d.ObjectKind.INDEX])
    makers: list[Callable[[], c.ExplainTarget]] = [
        lambda: select(rng),
        lambda: subscribe(rng),
        lambda: create_view(rng),
        lambda: create_materialized_view(rng),
        lambda: create_index(rng),
        lambda: c.ExplainObject(kind, name(rng), flag(rng)),
    ]
    words = options(
        rng,
        lambda: o.Option("ARITY"),
        lambda: o.Option("JOIN IMPLEMENTATIONS", maybe(rng, lambda: scalar(rng))),
    )
    stage = rng.choice([None, "OPTIMIZED", "LOCALLY OPTIMIZED", "RAW", "DELTA", "SPARK"])
    return c.ExplainPlanStatement(rng.choice(makers)(), stage, words, format_)


def portal(rng: Random) -> Statement:
    some_name = maybe(rng, lambda: identifier(rng))
    types = some(rng, lambda: data_type(rng))
    makers: list[Callable[[], Statement]] = [
        lambda: c.DeclareStatement(identifier(rng), select(rng), flag(rng)),
        lambda: c.DeclareStatement(identifier(rng), subscribe(rng), flag(rng)),
        lambda: c.FetchStatement(
            identifier(rng),
            rng.choice([None, 0, 1, 100]),
            options(rng, lambda: o.Option("TIMEOUT", option_value(rng))),
        ),
        lambda: c.CloseStatement(some_name),
        lambda: c.DeallocateStatement(some_name),
        lambda: c.PrepareStatement(identifier(rng), preparable(rng), types),
        lambda: c.ExecuteStatement(identifier(rng), expressions(rng, 1)),
    ]
    return rng.choice(makers)()


def session(rng: Random) -> Statement:
    some_variable = maybe(rng, lambda: variable(rng))
    found = modes(rng)
    makers: list[Callable[[], Statement]] = [
        lambda: c.SetVariableStatement(variable(rng), _values(rng), flag(rng)),
        lambda: c.ResetVariableStatement(some_variable),
        lambda: c.AlterSystemSetStatement(variable(rng), _values(rng)),
        lambda: c.AlterSystemResetStatement(some_variable),
        lambda: c.BeginStatement(found),
        lambda: c.SetTransactionStatement(
            c.TransactionModes(read_only=True, isolation=found.isolation), flag(rng)
        ),
        lambda: c.CommitStatement(flag(rng)),
        lambda: c.RollbackStatement(flag(rng)),
        lambda: c.DiscardStatement(rng.choice(["ALL", "PLANS", "SEQUENCES", "TEMP"])),
    ]
    return rng.choice(makers)()


def copy(rng: Random) -> Statement:
    words = options(
        rng,
        lambda: o.Option("FORMAT", plain_name(rng)),
        lambda: o.Option("NULL", string(rng)),
        lambda: o.Option("HEADER"),
    )
    source = c.CopyTable(name(rng), columns(rng))
    if flag(rng):
        return c.CopyFromStatement(source, words)
    results = select(rng) if flag(rng) else subscribe(rng)
    return c.CopyToStatement(source if flag(rng) else results, words)


def command(rng: Random) -> Statement:
    return rng.choice([preparable, show, explain, portal, session, copy])(rng)
