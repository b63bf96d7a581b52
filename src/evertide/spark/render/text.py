"""What a Spark SQL text is made of: common table expressions, bound parameters, Python functions.

A relation inside a text has the columns c0..cN-1 and d, the multiplicity. It may also have e, the
encoded error of an error row, whose other columns are NULL then; and t, the timestamp, if the text
deals with changes instead of contents.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa

from evertide.expr.relation import Types
from evertide.persist.coding.encoding import encode_column, spark_type_name
from evertide.spark.udf.register import PythonFunction
from evertide.vocab.datum import Datum, Interval, Row
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

# Nothing else in a text looks like the name of a common table expression.
_NAME = re.compile(r"\br\d+\b")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A relation of the text under construction.

    `fallible` says that it has the column e, `timed` that it has t. One that is `computed_once` may
    be read in several places and costs as much as in one.
    """

    name: str
    types: Types
    fallible: bool = False
    timed: bool = False
    computed_once: bool = False

    @property
    def columns(self) -> list[str]:
        """c0..cN-1."""
        return [f"c{i}" for i in range(len(self.types))]

    @property
    def extra(self) -> list[str]:
        """The columns beside c0..cN-1 and d that this relation has."""
        return ["e"] * self.fallible + ["t"] * self.timed


@dataclass(slots=True)
class TextBuilder:
    """Collects the parts of one text."""

    # In front of the names of views, which all jobs of a session share.
    prefix: str = ""
    expressions: list[tuple[str, str]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, PythonFunction] = field(default_factory=dict)
    # Relations that the job must offer as views beside its imports.
    constants: dict[str, tuple[Types, pa.Table]] = field(default_factory=dict)
    _bound: dict[tuple[type, str], str] = field(default_factory=dict)

    def add(self, select: str, like: Rendered, **changes: Any) -> Rendered:
        """One more common table expression, shaped like another relation but for the changes."""
        name = f"r{len(self.expressions)}"
        self.expressions.append((name, select))
        return replace(like, name=name, **{"computed_once": False, **changes})

    def share(self, relation: Rendered) -> Rendered:
        """The same relation, computed once however often it is read.

        Spark copies a common table expression to every place that reads it, and the copies of
        copies grow without bound; only one that is not deterministic it keeps. The condition makes
        it that and is always true. (A Python function of ours does the same.)
        """
        if relation.computed_once:
            return relation
        select = f"SELECT * FROM {relation.name} WHERE rand() >= 0"
        return self.add(select, relation, computed_once=True)

    def call(self, function: PythonFunction, arguments: Iterable[str]) -> str:
        """A call of a Python function; the job registers it under this name first."""
        self.functions[function.name] = function
        return f"{function.name}({', '.join(arguments)})"

    def text(self, select: str) -> str:
        """The whole text, whose result is this SELECT.

        What is read once is put where it is read: Spark resolves nested queries in one go, but
        common table expressions one round after another, each over the whole text.
        """
        bodies = [body for _, body in self.expressions]
        readers = Counter(name for body in [*bodies, select] for name in _NAME.findall(body))
        nested: dict[str, str] = {}

        def inner(found: re.Match[str]) -> str:
            return nested.get(found.group(), found.group())

        kept: list[str] = []
        for name, body in self.expressions:
            whole = f"({_NAME.sub(inner, body)})"
            if readers[name] == 1:
                nested[name] = whole
            elif readers[name] > 1:
                kept.append(f"{name} AS {whole}")
        select = _NAME.sub(inner, select)
        return f"WITH {', '.join(kept)} {select}" if kept else select

    def bind(self, value: bool | int | float | str | bytes, spark_type: str) -> str:
        """A value as a parameter; equal values share one, because each costs a millisecond."""
        key = (type(value), repr(value))
        name = self._bound.get(key)
        if name is None:
            name = self._bound[key] = f"p{len(self.parameters)}"
            self.parameters[name] = value
        return f"CAST(:{name} AS {spark_type})"

    def literal(self, sql_type: SqlType, datum: Datum) -> str:
        """A datum in its physical encoding."""
        spark_type = spark_type_name(sql_type)
        if datum is None:
            return f"CAST(NULL AS {spark_type})"
        match sql_type.kind:
            case Kind.INTERVAL:
                return self._interval(cast(Interval, datum))
            case Kind.ARRAY | Kind.LIST:
                element = sql_type.element
                assert element is not None, "an array or list has an element type"
                parts = [self.literal(element, part) for part in cast(Row, datum)]
                return f"CAST(array({', '.join(parts)}) AS {spark_type})"
            case kind if kind in RANGE_BASES:
                return self._range(sql_type, cast(Row, datum))
            case Kind.MAP:
                return self._map(sql_type, cast("tuple[tuple[str, Datum], ...]", datum))
            case _:
                physical = encode_column(sql_type, [datum])[0].as_py()
                return self.bind(physical, spark_type)

    def _map(self, sql_type: SqlType, pairs: tuple[tuple[str, Datum], ...]) -> str:
        assert sql_type.element is not None, "a map has a value type"
        parts = [
            f"struct({self.bind(key, 'string')} AS key, {self.literal(sql_type.element, value)}"
            " AS value)"
            for key, value in pairs
        ]
        return f"CAST(array({', '.join(parts)}) AS {spark_type_name(sql_type)})"

    def _range(self, sql_type: SqlType, datum: Row) -> str:
        base = RANGE_BASES[sql_type.kind]
        lower, upper = self.literal(base, datum[0]), self.literal(base, datum[1])
        bounds = self.bind(int(bool(datum[2])) + 2 * int(bool(datum[3])), "int")
        return f"named_struct('lower', {lower}, 'upper', {upper}, 'bounds', {bounds})"

    def _interval(self, value: Interval) -> str:
        months, days = self.bind(value.months, "int"), self.bind(value.days, "int")
        micros = self.bind(value.micros, "bigint")
        return f"named_struct('months', {months}, 'days', {days}, 'micros', {micros})"


def select_list(*parts: Sequence[str]) -> str:
    """Columns of a SELECT put together."""
    return ", ".join(column for part in parts for column in part)


def rows_only(relation: Rendered) -> str:
    """A FROM item without the relation's error rows."""
    if not relation.fallible:
        return relation.name
    return f"(SELECT * FROM {relation.name} WHERE e IS NULL)"


def errors_of(relation: Rendered, types: Types) -> str:
    """The relation's error rows alone, as rows of a relation with these types."""
    nulls = [f"CAST(NULL AS {spark_type_name(t)}) AS c{i}" for i, t in enumerate(types)]
    time = ["t"] * relation.timed
    columns = select_list(nulls, ["e"], time, ["d"])
    return f"SELECT {columns} FROM {relation.name} WHERE e IS NOT NULL"


def with_errors(builder: TextBuilder, rows: Rendered, sources: Iterable[Rendered]) -> Rendered:
    """Rows together with the errors of what they were made from; operators pass those on."""
    failing = [source for source in sources if source.fallible]
    if not failing:
        return rows
    error = "e" if rows.fallible else "CAST(NULL AS string) AS e"
    time = ["t"] * rows.timed
    own = f"SELECT {select_list(rows.columns, [error], time, ['d'])} FROM {rows.name}"
    parts = [own, *(errors_of(source, rows.types) for source in failing)]
    return builder.add(" UNION ALL ".join(parts), rows, fallible=True)
