"""Where we answer differently from PostgreSQL on purpose, and why."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.json_value import parse_jsonb
from evertide.vocab.datum import TS_INFINITY, Datum, Interval
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import FLOAT4, FLOAT8, JSONB, NUMERIC, Kind

# Functions, by name, that PostgreSQL does not have in this form.
NOT_COMPARED: dict[str, str] = {
    "array_slice": "bounds beyond the array are compared through subscripts of the planner",
    "boolout": "PostgreSQL's output function, which its SQL cannot call on NULL",
    "bpcharout": "PostgreSQL's output function, which its SQL cannot call on NULL",
    "pack": "makes an aggregate's argument", "pack_text": "makes an aggregate's argument",
    "pack_member": "makes an aggregate's argument", "pack_bytes": "makes an aggregate's argument",
    "digest": "an extension in PostgreSQL", "hmac": "an extension in PostgreSQL",
    **dict.fromkeys(("crc32", "datediff", "kafka_murmur2", "seahash"), "the peer's own"),
    "uuid_generate_v5": "an extension in PostgreSQL",
    "constant_time_eq": "the peer's own", "list": "PostgreSQL has no lists",
    "mz_at_most_one_row": "inserted by the planner", "mz_key": "inserted by the planner",
    "mz_joined_keys": "inserted by the planner",
    **dict.fromkeys(
        ("obj_description", "col_description", "shobj_description", "pg_get_expr"),
        "answers for every object alike; PostgreSQL looks into its catalog",
    ),
    **dict.fromkeys(
        (
            "current_setting", "regcollationout", "regconfigout", "regdictionaryout",
            "regnamespaceout", "regoperatorout", "regoperout", "regprocedureout", "regroleout",
            "to_regclass", "to_regnamespace", "to_regproc", "to_regrole",
        ),
        "looks into the session's snapshot, which is not here",
    ),
    **dict.fromkeys(("pg_get_userbyid", "jsonb_pretty"), "PostgreSQL's catalog and layout"),
}  # fmt: skip
SIGNATURES_NOT_COMPARED: dict[str, str] = {
    "length(text,text)": "the peer's own",
    "length(bytea,text)": "PostgreSQL does not know all encodings",
    **dict.fromkeys(
        (
            "numeric(numeric,integer,integer)",
            "time(time without time zone,integer)",
            "timestamp(timestamp without time zone,integer)",
            "timestamptz(timestamp with time zone,integer)",
            "interval(interval,integer)",
            "varchar(character varying,integer,boolean)",
            "bpchar(character,integer,boolean)",
        ),
        "modifiers are plain numbers here; they are compared as casts",
    ),
}
NOT_COMPARED_PREFIXES: dict[str, str] = {
    "has_": "always true here: rights are checked when a statement is planned",
    "pg_has_role": "always true here: rights are checked when a statement is planned",
    "pg_": "answers for every object alike; PostgreSQL looks into its catalog",
    "mz_": "the peer's own, or inserted by the planner",
}


@dataclass(frozen=True)
class Answer:
    """One call and both answers to it: a value, or the SQLSTATE of an error."""

    function: ScalarFunction
    arguments: tuple[Datum, ...]
    ours: Datum
    our_code: str | None
    theirs: str | None
    their_code: str | None


def _numeric_range(answer: Answer) -> bool:
    """Ours ends at 39 digits before and 39 after the point."""
    if answer.our_code != "22003" or answer.theirs is None:
        return False
    digits = re.findall(r"\d+(?:\.\d+)?", answer.theirs)
    return any(len(d.split(".")[0]) > 39 or len(d.partition(".")[2]) > 39 for d in digits)


def _end_of_time(answer: Answer) -> bool:
    """Microseconds since 1970 end 30 years before microseconds since 2000."""
    late = any(
        isinstance(datum, int) and TS_INFINITY - 10**15 < datum < TS_INFINITY
        for datum in answer.arguments
    )
    return late and (answer.our_code == "22008" or answer.function.name == "date_bin")


def _extreme_interval(answer: Answer) -> bool:
    """PostgreSQL 16 overflows silently when it adds the longest interval to a time of day."""
    parts = [
        part for datum in answer.arguments for part in (datum if type(datum) is tuple else [datum])
    ]
    longest = any(isinstance(part, Interval) and abs(part.micros) > 2**62 for part in parts)
    types = (*answer.function.arguments, answer.function.result)
    kinds = {t.kind if t.element is None else t.element.kind for t in types}
    return longest and Kind.TIME in kinds


def _jsonb_text(answer: Answer) -> bool:
    """Compact, where PostgreSQL puts blanks after colons and commas."""
    types = answer.function.arguments
    if not any(JSONB in (t, t.element) for t in types) or answer.theirs is None:
        return False
    ours = str(answer.ours if not isinstance(answer.ours, tuple) else answer.theirs)
    try:
        return parse_jsonb(ours) == parse_jsonb(answer.theirs)
    except SqlError:
        bare, their_bare = re.sub(r"\s", "", ours), re.sub(r"\s", "", answer.theirs)
        # A name is cut, later where there are no blanks.
        return bare == their_bare or (len(answer.theirs) >= 60 and bare.startswith(their_bare))


def _jsonb_of_timestamp(answer: Answer) -> bool:
    """The type's own text, without ISO 8601's T."""
    kinds = {t.kind if t.element is None else t.element.kind for t in answer.function.arguments}
    timestamps = {Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
    return answer.function.name == "to_jsonb" and bool(kinds & timestamps)


def _upper(answer: Answer) -> bool:
    """Unicode's full rules: ß becomes SS."""
    return answer.function.name in ("upper", "initcap") and "ß" in str(answer.arguments[0])


def _single_byte(answer: Answer) -> bool:
    """The type "char" holds a character here, a byte there."""
    types = (*answer.function.arguments, answer.function.result)
    kinds = {t.kind if t.element is None else t.element.kind for t in types}
    return Kind.CHAR in kinds and not str(answer.arguments).isascii()


def _infinite_age(answer: Answer) -> bool:
    """PostgreSQL 16 computes with the numbers that stand for infinity."""
    return answer.function.name == "age" and answer.our_code == "22008"


def _vanishing_power(answer: Answer) -> bool:
    """What is too small for 39 places is an error, as for products."""
    is_power = answer.function.name in ("power", "pow", "^", "exp")
    return is_power and answer.our_code == "22003" and str(answer.theirs).strip("0.") == ""


def _small_quotient(answer: Answer) -> bool:
    """39 places after the point are fewer than PostgreSQL shows of very small numbers."""
    return answer.function.result == NUMERIC and str(answer.theirs).startswith(
        ("0." + "0" * 30, "-0." + "0" * 30)
    )


def _last_place(answer: Answer) -> bool:
    """Mathematical libraries may differ in the last binary place."""
    transcendental = answer.function.name in (
        "exp", "ln", "log", "power", "pow", "^", "cbrt", "||/", "sin", "cos", "tan", "cot", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "asin", "acos", "atan", "atan2", "degrees",
        "radians", "log10",
    )  # fmt: skip
    if not transcendental or answer.function.result not in (FLOAT4, FLOAT8):
        return False
    if not isinstance(answer.ours, float) or answer.theirs is None:
        return False
    return abs(answer.ours - float(answer.theirs)) <= abs(answer.ours) * 1e-15


def _posix_zone(answer: Answer) -> bool:
    """Time zones are names and offsets; PostgreSQL also reads rules such as `X1Y` in them."""
    takes_zone = answer.function.name in ("timezone", "date_trunc")
    return takes_zone and answer.our_code == "22023" and answer.their_code is None


def _punctuation(answer: Answer) -> bool:
    """PostgreSQL passes over brackets and commas in the text of dates, times and intervals."""
    read = {Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL}
    kind = answer.function.result.kind
    return (
        kind in read
        and answer.our_code == "22007"
        and bool(re.search(r"[][(){}]", str(answer.arguments)))
    )


def _bin_before_origin(answer: Answer) -> bool:
    """PostgreSQL 16 takes the bin before, where a moment before the origin begins a bin."""
    return answer.function.name == "date_bin" and answer.ours == answer.arguments[1]


# Of expressions, beside those of single calls.
SINGLE = '"char" is a character'
JUNCTION = "AND and OR pass over errors"
INEXACT = "numeric has more digits"
ZEROS = "numeric has no trailing zeros"
SUBSCRIPT = "subscripts are looked at"
OF_EXPRESSIONS: dict[str, str] = {
    SUBSCRIPT: "An error in the subscript of a NULL array counts, as in any other argument.",
    ZEROS: "A number is kept by its value, so its text does not say how it was written.",
    JUNCTION: "An argument that decides wins over errors of the others, wherever it stands.",
    INEXACT: "Quotients and roots have up to 39 digits where PostgreSQL rounds them earlier.",
}

DEVIATIONS: dict[str, Callable[[Answer], bool]] = {
    "numeric has 39 digits": _numeric_range,
    "numeric has 39 places": _small_quotient,
    "timestamps end in 294247": _end_of_time,
    "PostgreSQL overflows": _extreme_interval,
    "jsonb is compact": _jsonb_text,
    "jsonb of timestamps has their text": _jsonb_of_timestamp,
    "powers vanish with an error": _vanishing_power,
    "ß has a capital": _upper,
    SINGLE: _single_byte,
    "infinite ages are refused": _infinite_age,
    "the last place of a float": _last_place,
    "zones are names and offsets": _posix_zone,
    "times have no brackets": _punctuation,
    "a bin begins at its first moment": _bin_before_origin,
}
