"""Types of statement parameters, found from how they are used."""

from collections.abc import Sequence

from evertide.expr.dimensions import dimension_count, with_dimensions
from evertide.expr.scalar import Parameter
from evertide.vocab.datum import Datum
from evertide.vocab.errors import IndeterminateType, UndefinedParameter
from evertide.vocab.sql_type import TEXT, UNKNOWN, Kind, SqlType

MOST_PARAMETERS = 65535  # what the wire protocol can count


class Parameters:
    """The parameters of one statement.

    A parameter has no type until something that needs one meets it; the first need decides, as in
    PostgreSQL. Values are known only when a statement is planned to be run at once, and only LIMIT
    and OFFSET look at them: a plan holds these as numbers.
    """

    def __init__(
        self, declared: Sequence[SqlType | None] = (), values: Sequence[Datum] | None = None
    ) -> None:
        self._types: list[SqlType | None] = list(declared)
        self._values = values
        self._needs_values = False
        self._references: dict[int, int] = {}

    @property
    def needs_values(self) -> bool:
        """The plan depends on a value that was not given: plan again once there is one."""
        return self._needs_values

    def reference(self, number: int, *, position: int | None) -> Parameter:
        """The parameter `$number`, of type UNKNOWN while nothing has settled it."""
        if not 0 < number <= MOST_PARAMETERS:
            raise UndefinedParameter(f"there is no parameter ${number}", position=position)
        self._types.extend([None] * (number - len(self._types)))
        self._references[number - 1] = self._references.get(number - 1, 0) + 1
        return Parameter(number - 1, self._types[number - 1] or UNKNOWN)

    def type_of(self, parameter: Parameter) -> SqlType:
        """Its type now, which a use after the reference was made may have settled."""
        return self._types[parameter.index] or UNKNOWN

    def settle(self, parameter: Parameter, wanted: SqlType) -> Parameter:
        """Give an untyped parameter its type, unless another use has done so already."""
        settled = self._types[parameter.index]
        if settled is None:
            settled = _without_modifiers(wanted)
            self._types[parameter.index] = settled
        return Parameter(parameter.index, settled)

    def fit(self, parameter: Parameter, wanted: SqlType) -> Parameter:
        """A parameter that a client declared as an array, with the dimensions that are wanted.

        Clients cannot tell how many there are. Where the parameter stands elsewhere too, it has
        been taken for what it was declared.
        """
        known, count = self.type_of(parameter), dimension_count(wanted)
        if known.kind is not Kind.ARRAY or count < 2 or self._references[parameter.index] > 1:
            return parameter
        self._types[parameter.index] = with_dimensions(known, count)
        return Parameter(parameter.index, with_dimensions(known, count))

    def value(self, parameter: Parameter) -> Datum:
        """Its value; None, with a note that it is needed, while there is none."""
        if self._values is None:
            self._needs_values = True
            return None
        return self._values[parameter.index]

    def finish(self) -> tuple[SqlType, ...]:
        """All types; a number that was skipped has none and never will."""
        found: list[SqlType] = []
        for number, sql_type in enumerate(self._types, 1):
            if sql_type is None:
                raise IndeterminateType(f"could not determine data type of parameter ${number}")
            found.append(sql_type)
        return tuple(found)


def _without_modifiers(sql_type: SqlType) -> SqlType:
    """A client sends the whole value; the cast around it cuts it to varchar(3)."""
    if sql_type.kind is Kind.UNKNOWN:
        return TEXT
    return SqlType(sql_type.kind, element=sql_type.element)
