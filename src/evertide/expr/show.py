"""Trees as text, for EXPLAIN and for failing tests."""

from collections.abc import Callable
from typing import assert_never

from evertide.expr.functions.row import AggregateFunction
from evertide.expr.recursion import MARK
from evertide.expr.relation import (
    USUAL_FRAME,
    AggregateCall,
    Apply,
    Constant,
    Distance,
    Distinct,
    Filter,
    FlatMap,
    Get,
    Join,
    LetRec,
    LocalGet,
    Map,
    Negate,
    OuterJoin,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
    WindowCall,
)
from evertide.expr.relation_walk import inputs_of
from evertide.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Scalar,
    SessionCall,
)
from evertide.vocab.ids import GlobalId

# Constants are shown by their first rows only.
_SHOWN_ROWS = 5


def show_relation(relation: Relation, name: Callable[[GlobalId], str] = str) -> str:
    """One line per node, inputs indented below it; collections are named by `name`."""
    lines: list[str] = []
    stack = [(relation, 0)]
    while stack:
        node, depth = stack.pop()
        lines.append("  " * depth + show_node(node, name))
        stack.extend((child, depth + 1) for child in reversed(inputs_of(node)))
    return "\n".join(lines)


def show_node(node: Relation, name: Callable[[GlobalId], str] = str) -> str:
    """One operator without its inputs."""
    match node:
        case Constant(rows=rows):
            shown = ", ".join(str(row) for row, _ in rows[:_SHOWN_ROWS])
            more = f", ... {len(rows)} rows" if len(rows) > _SHOWN_ROWS else ""
            return f"Constant [{shown}{more}]"
        case Get(global_id=global_id):
            return f"Get {name(global_id)}"
        case LocalGet(name=local):
            return f"Get {_plain_name(local)}"
        case LetRec():
            return _recursion(node)
        case Project(columns=columns):
            return f"Project [{', '.join(f'#{c}' for c in columns)}]"
        case Map(scalars=scalars):
            return f"Map [{_all(scalars)}]"
        case Filter(predicates=predicates):
            return f"Filter {' AND '.join(show_scalar(p) for p in predicates)}"
        case Join(equivalences=equivalences):
            on = " AND ".join(" = ".join(f"#{c}" for c in columns) for columns in equivalences)
            return f"Join on {on}" if on else "CrossJoin"
        case OuterJoin(kind=kind, on=on_):
            return f"OuterJoin {kind} on [{_all(on_)}]"
        case Reduce(keys=keys, aggregates=aggregates):
            shown = ", ".join(show_aggregate(a) for a in aggregates)
            return f"Reduce group_by=[{_all(keys)}] aggregates=[{shown}]"
        case TopK(group=group, order=order, limit=limit, offset=offset):
            keys_ = ", ".join(f"#{k.column}{' desc' if k.descending else ''}" for k in order)
            return f"TopK group_by={list(group)} order_by=[{keys_}] limit={limit} offset={offset}"
        case Window(group=group, order=order, calls=calls):
            keys_ = ", ".join(f"#{k.column}{' desc' if k.descending else ''}" for k in order)
            functions = ", ".join(show_window_call(call) for call in calls)
            return f"Window partition_by={list(group)} order_by=[{keys_}] functions=[{functions}]"
        case FlatMap(function=function, arguments=arguments, ordinality=ordinality):
            numbered = " with ordinality" if ordinality else ""
            return f"FlatMap {function.name}({_all(arguments)}){numbered}"
        case Apply() | Distinct() | Negate() | Threshold() | Union():
            return type(node).__name__
        case _:
            assert_never(node)


def show_scalar(scalar: Scalar) -> str:
    """An expression with columns as #n."""
    match scalar:
        case ColumnRef(index=index):
            return f"#{index}"
        case OuterColumn(depth=depth, index=index):
            return f"#{'^' * (depth + 1)}{index}"
        case Literal(value=value):
            return "null" if value is None else repr(value)
        case Parameter(index=index):
            return f"${index + 1}"
        case SessionCall(name=name):
            return f"{name}()"
        case Call(function=function, arguments=arguments):
            return _call(function.name, arguments)
        case And(arguments=arguments):
            return "(" + " AND ".join(show_scalar(a) for a in arguments) + ")"
        case Or(arguments=arguments):
            return "(" + " OR ".join(show_scalar(a) for a in arguments) + ")"
        case Case(branches=branches, otherwise=otherwise):
            shown = " ".join(f"when {show_scalar(c)} then {show_scalar(v)}" for c, v in branches)
            return f"case {shown} else {show_scalar(otherwise)} end"
        case Coalesce(arguments=arguments):
            return f"coalesce({_all(arguments)})"
        case IsNull(argument=argument):
            return f"({show_scalar(argument)}) IS NULL"
        case _:
            assert_never(scalar)


def _recursion(node: LetRec) -> str:
    """Its inputs follow: a definition for each name, then what is made of them."""
    limit = ""
    if node.limit is not None:
        word = "error" if node.limit.fails else "return"
        limit = f" {word} at recursion limit {node.limit.iterations}"
    return f"LetRec [{', '.join(map(_plain_name, node.names))}]{limit}"


def _plain_name(name: str) -> str:
    """As the query has it: what makes it unique is of no interest."""
    return name.partition(MARK)[0]


def _call(name: str, arguments: tuple[Scalar, ...]) -> str:
    """Operators between their arguments, functions before them."""
    if not name[:1].isalpha() and len(arguments) == 2:
        left, right = arguments
        return f"({show_scalar(left)} {name} {show_scalar(right)})"
    return f"{name}({_all(arguments)})"


def show_aggregate(call: AggregateCall) -> str:
    """An aggregate with its argument, and the order that it is looked at in if it asks for one."""
    inside = "*" if call.argument is None else show_scalar(call.argument)
    order = ", ".join(f"{show_scalar(o.key)}{' desc' if o.descending else ''}" for o in call.order)
    ordered = f" order by {order}" if order else ""
    return f"{call.function.name}({'distinct ' if call.distinct else ''}{inside}{ordered})"


def show_window_call(call: WindowCall) -> str:
    """A window function, its frame in words unless it is the usual one."""
    name = call.function.name if isinstance(call.function, AggregateFunction) else call.function
    inside = _all(call.arguments)
    if isinstance(call.function, AggregateFunction) and not call.arguments:
        inside = "*"
    nulls = " ignore nulls" if call.ignore_nulls else ""
    frame = call.frame
    if frame == USUAL_FRAME:
        return f"{name}({inside}){nulls}"
    start = _bound(frame.start, "unbounded preceding")
    end = _bound(frame.end, "unbounded following")
    return f"{name}({inside}){nulls} {frame.unit} between {start} and {end}"


def _bound(offset: int | Distance | None, unbounded: str) -> str:
    if offset is None:
        return unbounded
    if isinstance(offset, Distance):
        return f"{show_scalar(offset.by)} {'following' if offset.following else 'preceding'}"
    if offset == 0:
        return "current row"
    return f"{abs(offset)} {'preceding' if offset < 0 else 'following'}"


def _all(scalars: tuple[Scalar, ...]) -> str:
    return ", ".join(show_scalar(s) for s in scalars)
