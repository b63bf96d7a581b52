"""Scalar expressions over the columns of one row.

Evaluation gives a datum or an error. Errors are definite: they depend on the row only, not on the
order in which an executor happens to look at arguments. For a call that is the error of the first
failing argument; And, Or, Case and Coalesce say below which of their arguments count.
"""

from dataclasses import dataclass
from typing import TypeAlias

from evertide.expr.functions.row import ScalarFunction
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import BOOL, SqlType


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """The column at this position of the input row, from 0."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class OuterColumn:
    """A column of a row around this one: of the left side of an Apply, seen from its right side.

    `depth` counts the Applies between, innermost first, from 0. It becomes a ColumnRef when the
    Apply becomes a join. `nullable` False: the column is never NULL, which makes that join cheaper.
    """

    depth: int
    index: int
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is a typed NULL."""

    value: Datum
    type: SqlType


@dataclass(frozen=True, slots=True)
class Parameter:
    """A statement parameter, $1 has index 0. Replaced by a Literal before anything runs."""

    index: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class SessionCall:
    """A value fixed when the statement starts: now, current_user, mz_now, current_database, ...

    Replaced by a Literal before anything runs.
    """

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the function table applied to arguments of exactly its types.

    `type` is the function's result type, with modifiers where the call settles them.
    """

    function: ScalarFunction
    arguments: tuple["Scalar", ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class And:
    """False if any argument is false, whatever the others are; else the least error; else NULL."""

    arguments: tuple["Scalar", ...]

    @property
    def type(self) -> SqlType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Or:
    """True if any argument is true, whatever the others are; else the least error; else NULL."""

    arguments: tuple["Scalar", ...]

    @property
    def type(self) -> SqlType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Case:
    """The first branch whose condition is true; branches not taken cannot fail.

    `branches` are (condition, value); `otherwise` is a typed NULL where SQL has no ELSE.
    """

    branches: tuple[tuple["Scalar", "Scalar"], ...]
    otherwise: "Scalar"
    type: SqlType


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first argument that is not NULL; those after it cannot fail."""

    arguments: tuple["Scalar", ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class IsNull:
    """True where the argument is NULL; never NULL itself."""

    argument: "Scalar"

    @property
    def type(self) -> SqlType:
        return BOOL


Scalar: TypeAlias = (
    ColumnRef | OuterColumn | Literal | Parameter | SessionCall | Call | And | Or | Case | Coalesce
    | IsNull
)  # fmt: skip
