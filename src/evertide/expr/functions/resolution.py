"""Overload resolution by PostgreSQL's rules, and the common type of several expressions.

`UNKNOWN` is the type of a string literal or parameter that nothing has settled yet: it fits every
parameter. The result names the row and the type that each argument has to be brought to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from evertide.expr.functions.cast import Cast, CastContext, can_cast, find_cast, single_step
from evertide.expr.functions.category import (
    STRING,
    UNKNOWN_CATEGORY,
    category,
    is_preferred,
)
from evertide.expr.functions.made import made_rows
from evertide.expr.functions.made_aggregate import made_aggregates, made_table_functions
from evertide.expr.functions.record import extreme_row, is_record
from evertide.expr.functions.row import AggregateFunction, ScalarFunction, TableFunction
from evertide.expr.functions.rows import find_table_functions
from evertide.expr.functions.table import by_signature, find_aggregate, find_scalar
from evertide.expr.functions.type_groups import BPCHAR, CHAR, INTEGERS, UNSIGNED, unmodified
from evertide.vocab.errors import (
    AmbiguousFunction,
    CannotCoerce,
    DatatypeMismatch,
    InvalidParameterValue,
    UndefinedFunction,
)
from evertide.vocab.sql_type import (
    BOOL,
    BYTEA,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
)

Types: TypeAlias = tuple[SqlType, ...]
F = TypeVar("F", ScalarFunction, AggregateFunction, TableFunction)


@dataclass(frozen=True, slots=True)
class Coercion:
    """What one argument needs: nothing, a literal read as `target`, or these casts in turn."""

    target: SqlType
    casts: tuple[Cast, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolution(Generic[F]):
    """The row that a call means, and a coercion for each of its arguments."""

    function: F
    arguments: tuple[Coercion, ...]


@dataclass(frozen=True, slots=True)
class _Candidate(Generic[F]):
    """A row with its parameters repeated as often as the call has arguments."""

    function: F
    parameters: Types


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A call that is being resolved, and what to say if it cannot be."""

    name: str
    types: Types
    is_operator: bool = False

    def _shown(self) -> str:
        types = [str(sql_type) for sql_type in self.types]
        if not self.is_operator:
            return f"{self.name}({', '.join(types)})"
        return " ".join([*types[:-1], self.name, types[-1]])

    def missing(self) -> UndefinedFunction:
        if self.is_operator:
            return UndefinedFunction(f"operator does not exist: {self._shown()}", hint=_NO_MATCH)
        tables = find_scalar, find_aggregate, find_table_functions
        if not any(find(self.name) for find in tables):
            return UndefinedFunction(f'function "{self.name}" does not exist')
        return UndefinedFunction(f"function {self._shown()} does not exist", hint=_NO_MATCH)

    def ambiguous(self) -> AmbiguousFunction:
        if self.is_operator:
            return AmbiguousFunction(f"operator is not unique: {self._shown()}", hint=_NOT_UNIQUE)
        return AmbiguousFunction(f"function {self._shown()} is not unique", hint=_NOT_UNIQUE)


_NO_MATCH: Final = (
    "No function matches the given name and argument types. "
    "You might need to add explicit type casts."
)
_NOT_UNIQUE: Final = "Could not choose a best candidate. You might need to add explicit type casts."


def no_such_function(name: str, arguments: Sequence[SqlType]) -> UndefinedFunction:
    """What to say of a call by a known name with arguments that do not fit."""
    shown = ", ".join(str(argument) for argument in arguments)
    return UndefinedFunction(f"function {name}({shown}) does not exist", hint=_NO_MATCH)


def resolve_function(name: str, arguments: Sequence[SqlType]) -> Resolution[ScalarFunction]:
    """The function that a call by this name means."""
    types = tuple(unmodified(argument) for argument in arguments)
    special = _resolve_special(name, types)
    if special is not None:
        return special
    chosen = _choose(_matching(_known(name, types), types), types)
    return _resolved(chosen, _Attempt(name, types))


def _known(name: str, types: Types) -> tuple[ScalarFunction, ...]:
    """The table's rows, and those of types that are made of others."""
    return find_scalar(name) + made_rows(name, types)


def resolve_aggregate(name: str, arguments: Sequence[SqlType]) -> Resolution[AggregateFunction]:
    """The aggregate that a call by this name means; no arguments: count(*)."""
    types = tuple(unmodified(argument) for argument in arguments)
    attempt = _Attempt(name, types)
    if name in ("jsonb_agg", "jsonb_object_agg") and types:
        return _resolve_json_aggregate(attempt)
    if name in ("array_agg", "list_agg") and types == (UNKNOWN,):
        raise attempt.ambiguous()
    rows = find_aggregate(name) + made_aggregates(name, types)
    return _resolved(_choose(_matching(rows, types), types), attempt)


def resolve_table_function(name: str, arguments: Sequence[SqlType]) -> Resolution[TableFunction]:
    """The table function that a call by this name means."""
    types = tuple(unmodified(argument) for argument in arguments)
    rows = find_table_functions(name) + made_table_functions(name, types)
    return _resolved(_choose(_matching(rows, types), types), _Attempt(name, types))


def resolve_operator(name: str, arguments: Sequence[SqlType]) -> Resolution[ScalarFunction]:
    """The operator that one or two operands mean."""
    types = tuple(unmodified(argument) for argument in arguments)
    if name == "||" and _is_text_concatenation(types):
        return Resolution(_function("||(text,text)"), tuple(map(_cast_to_text, types)))
    candidates = _matching(_known(name, types), types)
    chosen = _same_type_operator(candidates, types) or _choose(candidates, types)
    return _resolved(chosen, _Attempt(name, types, is_operator=True))


def _resolved(chosen: Sequence[_Candidate[F]], attempt: _Attempt) -> Resolution[F]:
    if not chosen:
        raise attempt.missing()
    if len(chosen) > 1:
        if not attempt.is_operator:
            _refuse_polymorphic(chosen, attempt.types)
        raise attempt.ambiguous()
    (only,) = chosen
    return Resolution(only.function, _coercions(attempt.types, only.parameters))


def _refuse_polymorphic(chosen: Sequence[_Candidate[F]], types: Types) -> None:
    """A literal where any array may stand: nothing tells what its elements are."""
    for position, argument in enumerate(types):
        kinds = {candidate.parameters[position].kind for candidate in chosen}
        if argument == UNKNOWN and kinds == {Kind.ARRAY}:
            raise DatatypeMismatch(_POLYMORPHIC)


_POLYMORPHIC: Final = "could not determine polymorphic type because input has type unknown"


def _coercions(types: Types, parameters: Types) -> tuple[Coercion, ...]:
    return tuple(
        _coercion(argument, parameter)
        for argument, parameter in zip(types, parameters, strict=True)
    )


def _coercion(argument: SqlType, parameter: SqlType) -> Coercion:
    if argument in (parameter, UNKNOWN):
        return Coercion(parameter)
    cast = find_cast(argument, parameter)
    assert cast is not None, f"{argument} was found to fit {parameter}"
    return Coercion(parameter, (cast,))


def _matching(rows: Sequence[F], types: Types) -> list[_Candidate[F]]:
    """The rows whose parameters the arguments fit, as they are or by implicit casts."""
    candidates = []
    for row in rows:
        parameters = _parameters(row, len(types))
        if parameters is not None and all(map(_fits, types, parameters)):
            candidates.append(_Candidate(row, parameters))
    return _without_strangers(candidates, types)


def _parameters(
    row: ScalarFunction | AggregateFunction | TableFunction, count: int
) -> Types | None:
    declared = row.arguments
    if isinstance(row, ScalarFunction) and row.variadic and count >= len(declared):
        return declared + declared[-1:] * (count - len(declared))
    return declared if len(declared) == count else None


def _fits(argument: SqlType, parameter: SqlType) -> bool:
    return argument in (parameter, UNKNOWN) or can_cast(argument, parameter, CastContext.IMPLICIT)


def _without_strangers(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """Much casts to mz_timestamp by itself, but nothing should become one by accident."""
    if MZ_TIMESTAMP in types:
        return candidates
    return [c for c in candidates if MZ_TIMESTAMP not in c.parameters]


def _same_type_operator(candidates: Sequence[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """A literal beside a typed operand is first tried as that operand's own type."""
    if len(types) != 2 or types.count(UNKNOWN) != 1:
        return []
    known = types[0] if types[1] == UNKNOWN else types[1]
    return [c for c in candidates if c.parameters == (known, known)]


def _choose(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """PostgreSQL's successive rules, until one candidate is left or no rule helps."""
    for candidate in candidates:
        if candidate.parameters == types:
            return [candidate]
    for rule in (_most_exact, _integers_first, _most_preferred):
        if len(candidates) <= 1:
            return candidates
        candidates = rule(candidates, types)
    if len(candidates) > 1 and UNKNOWN in types:
        candidates = _by_category(candidates, types)
    if len(candidates) > 1 and UNKNOWN in types:
        candidates = _as_if_all_known(candidates, types) or candidates
    return candidates


def _most(
    candidates: list[_Candidate[F]], score: Callable[[_Candidate[F]], int]
) -> list[_Candidate[F]]:
    best = max(map(score, candidates))
    return [candidate for candidate in candidates if score(candidate) == best]


def _most_exact(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """Those that take the most arguments as they are."""

    def exact(candidate: _Candidate[F]) -> int:
        return sum(map(SqlType.__eq__, types, candidate.parameters))

    return _most(candidates, exact)


def _integers_first(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """Unsigned integers beside signed ones stay integers, which PostgreSQL has no rule for."""
    if not (set(types) & set(UNSIGNED) and set(types) <= set(INTEGERS)):
        return candidates
    integral = [c for c in candidates if set(c.parameters) <= set(INTEGERS)]
    return integral[:1] or candidates


def _most_preferred(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """Those that take the most arguments as they are or as their category's preferred type."""

    def preferred(candidate: _Candidate[F]) -> int:
        return sum(
            argument == parameter
            or (category(argument) == category(parameter) and is_preferred(parameter))
            for argument, parameter in zip(types, candidate.parameters, strict=True)
            if argument != UNKNOWN
        )

    return _most(candidates, preferred)


def _by_category(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """Settle what category each unknown argument has, and keep the candidates that agree.

    Strings win where they are possible, because a literal looks like one.
    """
    kept = candidates
    for position, argument in enumerate(types):
        if argument != UNKNOWN:
            continue
        wanted = _category_at(candidates, position)
        if wanted is None:
            return candidates
        kept = [c for c in kept if category(c.parameters[position]) == wanted]
        preferred = any(
            is_preferred(c.parameters[position])
            for c in candidates
            if category(c.parameters[position]) == wanted
        )
        if preferred:
            kept = [c for c in kept if is_preferred(c.parameters[position])]
    return kept or candidates


def _category_at(candidates: Sequence[_Candidate[F]], position: int) -> str | None:
    categories = {category(candidate.parameters[position]) for candidate in candidates}
    if STRING in categories:
        return STRING
    return categories.pop() if len(categories) == 1 else None


def _as_if_all_known(candidates: list[_Candidate[F]], types: Types) -> list[_Candidate[F]]:
    """If all known arguments are of one type, try the unknown ones as that type too."""
    known = {argument for argument in types if argument != UNKNOWN}
    if len(known) != 1:
        return []
    (only,) = known
    fitting = [
        candidate
        for candidate in candidates
        if all(_fits(only, parameter) for parameter in candidate.parameters)
    ]
    return fitting if len(fitting) == 1 else []


# Functions that take anything and look at its text, and those that look at its jsonb.
_TEXT_OF_ANYTHING: Final = {
    "concat": 0, "concat_ws": 1, "format": 1, "quote_literal": 0, "quote_nullable": 0,
}  # fmt: skip
_JSON_OF_ANYTHING: Final = frozenset({"jsonb_build_array", "jsonb_build_object"})
_EXTREMES: Final = frozenset({"greatest", "least"})


def _resolve_special(name: str, types: Types) -> Resolution[ScalarFunction] | None:
    if not types:
        return None
    if name in _TEXT_OF_ANYTHING:
        return _resolve_text_of_anything(name, types)
    if name in _JSON_OF_ANYTHING:
        (row,) = [row for row in find_scalar(name) if row.variadic]
        if name == "jsonb_build_object":
            _check_keys(types)
        return Resolution(row, tuple(map(_to_jsonb, types)))
    if name in _EXTREMES:
        return _resolve_extreme(name, types)
    if name == "to_jsonb" and types == (UNKNOWN,):
        raise DatatypeMismatch(_POLYMORPHIC)
    return None


def _check_keys(types: Types) -> None:
    """Names of members are texts of plain values."""
    for key in types[::2]:
        if key == JSONB or key.element is not None or key.fields is not None:
            raise InvalidParameterValue("key value must be scalar, not array, composite, or json")


def _resolve_text_of_anything(name: str, types: Types) -> Resolution[ScalarFunction] | None:
    (row,) = find_scalar(name)
    if len(types) < len(row.arguments) or (len(types) > 1 and not row.variadic):
        return None
    if not all(_fits(argument, TEXT) for argument in types[: _TEXT_OF_ANYTHING[name]]):
        return None
    return Resolution(row, tuple(map(_to_text, types)))


def _to_text(argument: SqlType) -> Coercion:
    """The output form of any value."""
    if argument in (TEXT, UNKNOWN):
        return Coercion(TEXT)
    if argument in (BOOL, BPCHAR):
        output = "boolout(boolean)" if argument == BOOL else "bpcharout(character)"
        return Coercion(TEXT, (single_step(_function(output)),))
    return _cast_coercion(argument)


def _cast_to_text(argument: SqlType) -> Coercion:
    """What a cast to text makes of it: booleans are spelled out."""
    return Coercion(TEXT) if argument in (TEXT, UNKNOWN) else _cast_coercion(argument)


def _cast_coercion(argument: SqlType) -> Coercion:
    cast = find_cast(argument, TEXT)
    assert cast is not None, f"{argument} has a text form"
    return Coercion(TEXT, (cast,))


def _to_jsonb(argument: SqlType) -> Coercion:
    """The jsonb of any value; a literal of unknown type is a string."""
    if argument == JSONB:
        return Coercion(JSONB)
    if argument == UNKNOWN:
        return Coercion(TEXT, (single_step(_function("to_jsonb(text)")),))
    return Coercion(JSONB, (single_step(_function(f"to_jsonb({argument})")),))


def _function(signature: str) -> ScalarFunction:
    row = by_signature(signature)
    assert isinstance(row, ScalarFunction), f"{signature} is a scalar function"
    return row


def _resolve_extreme(name: str, types: Types) -> Resolution[ScalarFunction]:
    shared = common_type(types, name)
    wanted = TEXT if shared.kind is Kind.VARCHAR else shared
    rows = [row for row in _known(name, (wanted,)) if row.arguments == (wanted,)]
    if is_record(wanted):
        rows = [extreme_row(name, wanted)]
    if not rows:
        raise UndefinedFunction(f"function {name}({shared}) does not exist")
    return Resolution(rows[0], _coercions(types, (wanted,) * len(types)))


def _resolve_json_aggregate(attempt: _Attempt) -> Resolution[AggregateFunction]:
    types = attempt.types
    rows = [row for row in find_aggregate(attempt.name) if len(row.arguments) == len(types)]
    if not rows:
        raise attempt.missing()
    (row,) = rows
    if attempt.name == "jsonb_agg":
        return Resolution(row, (_to_jsonb(types[0]),))
    return Resolution(row, (_to_text(types[0]), _to_jsonb(types[1])))


def _is_text_concatenation(types: Types) -> bool:
    """`text || anything` appends the other's text, unless that has a meaning of its own."""
    if any(t.element is not None for t in types) or len(types) != 2:
        return False
    if UNKNOWN in types and (JSONB in types or BYTEA in types):
        return False
    return any(category(t) in (STRING, UNKNOWN_CATEGORY) or t == CHAR for t in types)


def common_type(types: Sequence[SqlType], what: str = "UNION") -> SqlType:
    """The type that all branches of a CASE, UNION, VALUES and so on are brought to.

    `what` names the construct in errors. All unknown: text.
    """
    known = [t for t in types if t != UNKNOWN]
    if not known:
        return TEXT
    if all(t == known[0] for t in known):
        # A literal has no modifier of its own, so it must not be cut to that of the others.
        return known[0] if len(known) == len(types) else unmodified(known[0])
    chosen = unmodified(known[0])
    for candidate in map(unmodified, known[1:]):
        if candidate == chosen:
            continue
        if category(candidate) != category(chosen):
            raise _mismatch(what, chosen, candidate)
        if not is_preferred(chosen) and _only_forward(chosen, candidate):
            chosen = candidate
    for other in map(unmodified, known):
        if not _fits(other, chosen):
            raise CannotCoerce(f"{what} could not convert type {other} to {chosen}")
    return chosen


def _only_forward(source: SqlType, target: SqlType) -> bool:
    return _fits(source, target) and not _fits(target, source)


def _mismatch(what: str, left: SqlType, right: SqlType) -> DatatypeMismatch:
    return DatatypeMismatch(f"{what} types {left} and {right} cannot be matched")
