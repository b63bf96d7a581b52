"""Apply becomes joins: executors know no subqueries that see a row around.

The right side of an Apply depends on some of left's columns only. Let D be the distinct values that
left has in them. Computing right once for each row of D is the same as computing it once with D's
columns carried along: a product with D at the leaves, D's columns among the keys of every grouping,
and equal in both inputs of every join. Then left is joined with that on D's columns:

    Apply(left, right)  =  left join right', right' being right carried along with D

A join drops NULLs and finds 1 month and 30 days equal, but the values of D must be found again as
they are. So D also has *key* columns, which are never NULL and different for different values: for
a column that may be NULL, whether it is, and the value or a stand-in; for a type whose equal values
may look different, its text instead of its value.

Where right only filters and computes, over something that does not depend on the row around, none
of this is needed: the same is done over the product with left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, assert_never

from evertide.expr.functions.table import find_cast, find_scalar
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.join_order import offsets_of
from evertide.expr.outer_columns import FreeColumns, move_free, moved
from evertide.expr.recursion import FreeNames
from evertide.expr.relation import (
    Apply,
    Constant,
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
    Types,
    Union,
    Window,
)
from evertide.expr.relation_walk import inputs_of, rewrite_arguments, rewrite_scalars, rewrite_up
from evertide.expr.relation_walk import with_inputs as over
from evertide.expr.row_key import is_ambiguous
from evertide.expr.scalar import (
    Call,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    OuterColumn,
    Scalar,
)
from evertide.expr.scalar_walk import rewrite
from evertide.expr.transform.equalities import merged
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import TEXT, Kind

_ONE_EMPTY_ROW: Final = (((), 1),)
(_BPCHAR_OUTPUT,) = find_scalar("bpcharout")
# What stands for NULL in a key column beside another that says so; other types go by their text.
_STAND_INS: Final[dict[Kind, Datum]] = {
    Kind.BOOL: False,
    Kind.NUMERIC: Decimal(0),
    Kind.BYTEA: b"",
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.CHAR), ""),
    **dict.fromkeys(
        (
            Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.OID,
            Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE, Kind.MZ_TIMESTAMP, Kind.DATE, Kind.TIME,
            Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
        ),
        0,
    ),
}  # fmt: skip


def decorrelate(relation: Relation) -> Relation:
    """The relation without Apply in it. Outer joins are lowered first."""
    return rewrite_up(relation, lambda node: _joined(node) if isinstance(node, Apply) else node)


def _joined(apply: Apply) -> Relation:
    """`apply.right` holds no Apply any more: those further in come first."""
    free = FreeColumns()
    used = [column for column in free.of(apply.right) if column.depth == 0]
    if not used:
        return Join((apply.left, move_free(apply.right, -1)))
    plain = _over_product(apply.left, apply.right, free)
    if plain is not None:
        return plain
    rows = _outer_rows(apply.left, used)
    carried = _Carrying(rows, free).of(apply.right)
    width, left = len(rows.relation.types), rows.keyed
    offset = len(left.types)
    pairs = tuple((mine, offset + key) for mine, key in zip(rows.own, rows.keys, strict=True))
    joined = Join((left, carried), pairs)
    right = range(offset + width, offset + width + len(apply.right.types))
    return Project(joined, (*range(len(apply.left.types)), *right))


def _over_product(left: Relation, right: Relation, free: FreeColumns) -> Relation | None:
    """Operators that look at one row each, done over left's columns and their own; else None."""
    width = len(left.types)
    if not any(column.depth == 0 for column in free.of(right)):
        source = move_free(right, -1)
        empty = isinstance(source, Constant) and source.rows == _ONE_EMPTY_ROW
        return left if empty else Join((left, source))
    if not isinstance(right, Project | Map | Filter | FlatMap):
        return None
    source_or_none = _over_product(left, right.input, free)
    if source_or_none is None:
        return None
    if isinstance(right, Project):
        kept = tuple(width + column for column in right.columns)
        return Project(source_or_none, (*range(width), *kept))

    def beside(part: Scalar) -> Scalar:
        match part:
            case ColumnRef(index=index, type=sql_type):
                return ColumnRef(width + index, sql_type)
            case OuterColumn(depth=0, index=index, type=sql_type):
                return ColumnRef(index, sql_type)
            case OuterColumn():
                return moved(part, -1)
            case _:
                return part

    return rewrite_scalars(over(right, (source_or_none,)), lambda scalar: rewrite(scalar, beside))


@dataclass(frozen=True, slots=True)
class _OuterRows:
    """D, where in it a column of left is and which are its keys; left with those keys, and where.

    `keys` and `own` go together: position by position, columns of D and of `keyed`.
    """

    relation: Relation
    positions: dict[int, int]
    keys: tuple[int, ...]
    keyed: Relation
    own: tuple[int, ...]


def _outer_rows(left: Relation, used: Sequence[OuterColumn]) -> _OuterRows:
    columns: list[int] = []
    keys: list[int] = []
    computed: list[Scalar] = []
    width = len(left.types)
    indexes = sorted({column.index for column in used})
    for index in indexes:
        nullable = any(column.nullable for column in used if column.index == index)
        own_keys = _key_scalars(ColumnRef(index, left.types[index]), nullable=nullable)
        columns.append(index)
        for key in own_keys:
            keys.append(key.index if isinstance(key, ColumnRef) else width + len(computed))
            computed += [] if isinstance(key, ColumnRef) else [key]
    keyed = Map(left, tuple(computed)) if computed else left
    shown = [*columns, *(key for key in keys if key >= width)]
    relation = Distinct(Project(keyed, tuple(shown)))
    positions = {index: place for place, index in enumerate(columns)}
    return _OuterRows(
        relation, positions, tuple(shown.index(key) for key in keys), keyed, tuple(keys)
    )


def _key_scalars(column: ColumnRef, *, nullable: bool) -> list[Scalar]:
    """Values that are never NULL and differ where the column's values do."""
    exact = not is_ambiguous(column.type) and column.type.kind in _STAND_INS
    if exact and not nullable:
        return [column]
    value: Scalar = column if exact else _text_of(column)
    stand_in = Literal(_STAND_INS[column.type.kind] if exact else "", value.type)
    return [IsNull(column), Coalesce((value, stand_in), value.type)]


def _text_of(column: ColumnRef) -> Scalar:
    if column.type.kind is Kind.BPCHAR:  # whose cast to text drops the blanks that differ
        return Call(_BPCHAR_OUTPUT, (column,), TEXT)
    cast = find_cast(unmodified(column.type), TEXT)
    assert cast is not None, f"{column.type} has a text form"
    return cast.apply(column, explicit=True)


class _Carrying:
    """Relations with D's columns carried along in front of their own."""

    def __init__(self, rows: _OuterRows, free: FreeColumns) -> None:
        self._rows = rows
        self._free = free
        self._width = len(rows.relation.types)
        # Bindings that carry D's columns too, and who reads bindings.
        self._bound: set[str] = set()
        self._names = FreeNames()
        # The relation is kept beside the result, so that its id is not given to another object.
        self._done: dict[int, tuple[Relation, Relation]] = {}

    def of(self, node: Relation) -> Relation:
        known = self._done.get(id(node))
        if known is None:
            known = node, self._carried(node)
            self._done[id(node)] = known
        return known[1]

    def _depends(self, node: Relation) -> bool:
        if not self._bound.isdisjoint(self._names.of(node)):
            return True
        return any(column.depth == 0 for column in self._free.of(node))

    def _carried(self, node: Relation) -> Relation:
        if not self._depends(node):
            return self._beside(move_free(node, -1))
        width, outer = self._width, range(self._width)
        match node:
            case Project(input=source, columns=columns):
                return Project(self.of(source), (*outer, *(width + c for c in columns)))
            case Map() | Filter() | FlatMap():
                return rewrite_scalars(over(node, (self.of(node.input),)), self._scalar)
            case Join():
                return self._join(node)
            case Reduce(input=source, keys=keys, aggregates=aggregates):
                calls = tuple(rewrite_arguments(call, self._scalar) for call in aggregates)
                return Reduce(self.of(source), (*self._columns(), *map(self._scalar, keys)), calls)
            case TopK(input=source, group=group, order=order):
                moved_order = tuple(replace(key, column=width + key.column) for key in order)
                groups = (*outer, *(width + column for column in group))
                return replace(node, input=self.of(source), group=groups, order=moved_order)
            case Window(input=source, group=group, order=order):
                moved_order = tuple(replace(key, column=width + key.column) for key in order)
                groups = (*outer, *(width + column for column in group))
                window = replace(node, input=self.of(source), group=groups, order=moved_order)
                return rewrite_scalars(window, self._scalar)
            case Distinct() | Negate() | Threshold() | Union():
                return over(node, tuple(self.of(source) for source in inputs_of(node)))
            case LetRec(names=names):
                # The recursions of all rows of D go round together.
                self._bound |= set(names)
                return over(node, tuple(self.of(source) for source in inputs_of(node)))
            case LocalGet(name=name, types=types):
                return LocalGet(name, self._rows.relation.types + types)
            case Constant() | Get():
                raise AssertionError("a leaf depends on nothing")
            case OuterJoin() | Apply():
                raise AssertionError("outer joins and inner Applies are lowered first")
            case _:
                assert_never(node)

    def _beside(self, node: Relation) -> Relation:
        if isinstance(node, Constant) and node.rows == _ONE_EMPTY_ROW:
            return self._rows.relation
        return Join((self._rows.relation, node))

    def _columns(self) -> tuple[Scalar, ...]:
        types: Types = self._rows.relation.types
        return tuple(ColumnRef(index, sql_type) for index, sql_type in enumerate(types))

    def _scalar(self, scalar: Scalar) -> Scalar:
        def carried(part: Scalar) -> Scalar:
            match part:
                case ColumnRef(index=index, type=sql_type):
                    return ColumnRef(self._width + index, sql_type)
                case OuterColumn(depth=0, index=index, type=sql_type):
                    return ColumnRef(self._rows.positions[index], sql_type)
                case OuterColumn():
                    return moved(part, -1)
                case _:
                    return part

        return rewrite(scalar, carried)

    def _join(self, join: Join) -> Relation:
        """Inputs that depend on the row around must do so on the same one."""
        dependent = [self._depends(source) for source in join.inputs]
        inputs = tuple(
            self.of(source) if depends else move_free(source, -1)
            for source, depends in zip(join.inputs, dependent, strict=True)
        )
        offsets = offsets_of([len(source.types) for source in inputs])
        positions = [
            offsets[number] + (self._width if dependent[number] else 0) + column
            for number, source in enumerate(join.inputs)
            for column in range(len(source.types))
        ]
        starts = [offsets[number] for number, depends in enumerate(dependent) if depends]
        same_row = [tuple(start + key for start in starts) for key in self._rows.keys]
        pairs = same_row if len(starts) > 1 else []
        own = [tuple(positions[column] for column in members) for members in join.equivalences]
        outer = range(starts[0], starts[0] + self._width)
        return Project(Join(inputs, merged([*own, *pairs])), (*outer, *positions))
