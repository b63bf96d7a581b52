"""Rows of one table by what some of its columns equal: a read that leaves nothing to choose.

Most UPDATEs and DELETEs look for their rows so. Their conditions are told from the bound tree
alone; planning them as queries would cost several times as much as all else that they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evertide.adapter.reading.leaves import ShardLeaf
from evertide.adapter.reading.pinned import pin
from evertide.adapter.reading.question import Question, Read
from evertide.catalog.objects import Table
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.expr.relation import Filter, Finishing, Get, Map, Relation
from evertide.expr.scalar import Call, ColumnRef, Literal, Parameter, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.expr.transform.substitute import substitute_scalar
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import GlobalId

_NO_SCALARS: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class DirectRead:
    """The rows of a table that its leaf's conditions tell, and what each of them becomes."""

    read: Read
    leaf: ShardLeaf
    # A constant, or a column of the row; nothing where rows are only looked for.
    assignments: tuple[ColumnRef | Literal, ...]

    def followed(self, rows: Sequence[Row]) -> list[Row]:
        """Each row, and behind it what it becomes."""
        if not self.assignments:
            return list(rows)
        kept = [
            (place, scalar.index)
            for place, scalar in enumerate(self.assignments)
            if isinstance(scalar, ColumnRef)
        ]
        new: list[Datum] = [s.value if isinstance(s, Literal) else None for s in self.assignments]
        found: list[Row] = []
        for row in rows:
            for place, index in kept:
                new[place] = row[index]
            found.append((*row, *new))
        return found


def direct_read(question: Question, snapshot: Snapshot) -> DirectRead | None:
    """How to read it without planning; None where it must be planned."""
    relation, scalars = question.relation, _NO_SCALARS
    match question.relation:
        case Map(input=relation, scalars=scalars):
            pass
    found = _table_and_predicates(relation)
    if found is None:
        return None
    global_id, conditions = found
    predicates = tuple(_bound(predicate, question) for predicate in conditions)
    if any(pin(predicate) is None for predicate in predicates):
        return None
    assignments: list[ColumnRef | Literal] = []
    for scalar in scalars:
        assigned = _bound(scalar, question)
        if not isinstance(assigned, ColumnRef | Literal):
            return None
        assignments.append(assigned)
    item = snapshot.item_of(global_id)
    if item is None or not isinstance(item.definition, Table) or item.global_id != global_id:
        return None
    collection = collection_of(item, snapshot)
    if collection is None:
        return None  # temporary
    leaf = ShardLeaf(collection, item.name, predicates, once=True)
    read = Read(relation, Finishing(), snapshot, None, {global_id: leaf})
    return DirectRead(read, leaf, tuple(assignments))


def _table_and_predicates(relation: Relation) -> tuple[GlobalId, tuple[Scalar, ...]] | None:
    match relation:
        case Get(global_id=global_id):
            return global_id, ()
        case Filter(input=Get(global_id=global_id), predicates=predicates):
            return global_id, predicates
        case _:
            return None


def _bound(scalar: Scalar, question: Question) -> Scalar:
    """With what is known worked out. A column beside a value is all there is to most conditions:
    nothing follows from those two before there is a row, unless the value is NULL."""
    match scalar:
        case ColumnRef() | Literal():
            return scalar
        case Parameter():
            return _value_of(scalar, question)
        case Call(arguments=(ColumnRef() as column, Literal() | Parameter() as other)):
            value = _value_of(other, question)
            if isinstance(value, Literal) and value.value is not None:
                return scalar if value is other else replace(scalar, arguments=(column, value))
    bindings = question.bindings
    return fold_scalar(substitute_scalar(scalar, bindings) if bindings else scalar)


def _value_of(scalar: Literal | Parameter, question: Question) -> Literal | Parameter:
    """What stands for a parameter, if something of its type does."""
    if isinstance(scalar, Parameter) and scalar.index < len(question.parameters):
        given = question.parameters[scalar.index]
        return given if given.type == scalar.type else scalar
    return scalar
