"""Functions of pg_catalog that psql, drivers and tools call.

Those of Knowledge.CATALOG are bound to a snapshot by whoever runs the statement. Until then their
bodies say what is true without one: nobody knows the object.
"""

from decimal import Decimal
from typing import Final

from evertide.expr.functions.build import Body, looked_up, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import REGCLASS, REGPROC, REGTYPE
from evertide.expr.type_names import TYPES_BY_OID, type_name, type_oid
from evertide.vocab.sql_type import (
    BOOL,
    INT4,
    INT8,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    Kind,
    SqlType,
    array_of,
)

_ENCODINGS: Final = {0: "SQL_ASCII", 6: "UTF8", 8: "LATIN1"}
_UNITS: Final = ("kB", "MB", "GB", "TB", "PB")


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """The SQL name of the type with this oid and modifier.

    >>> format_type(1700, (10 << 16 | 2) + 4), format_type(1043, 12), format_type(23, None)
    ('numeric(10,2)', 'character varying(8)', 'integer')
    """
    if oid is None:
        return None
    if oid == 0:
        return "-"
    found = TYPES_BY_OID.get(oid)
    if found is None:
        return type_name(oid) or "???"
    return str(found) if modifier is None or modifier < 0 else _modified(found, modifier)


def _modified(sql_type: SqlType, modifier: int) -> str:
    """Numbers and lengths are packed with an offset of 4; digits of seconds are not."""
    name = str(sql_type)
    match sql_type.kind:
        case Kind.NUMERIC | Kind.VARCHAR | Kind.BPCHAR if modifier < 4:
            return name
        case Kind.BOOL | Kind.INT2 | Kind.INT4 | Kind.INT8 | Kind.FLOAT4 | Kind.FLOAT8:
            return name
        case Kind.NUMERIC:
            packed = modifier - 4
            # The scale has eleven bits and a sign.
            return f"numeric({packed >> 16},{((packed & 0x7FF) ^ 0x400) - 0x400})"
        case Kind.VARCHAR | Kind.BPCHAR:
            return f"{name}({modifier - 4})"
        case Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            first, rest = name.split(" ", 1)
            return f"{first}({modifier}) {rest}"
        case _:
            return f"{name}({modifier})"


def _user_name(oid: int) -> str:
    return f"unknown (OID={oid})"


def _encoding_name(number: int) -> str | None:
    return _ENCODINGS.get(number)


def _encoding_number(name: str) -> int:
    wanted = name.upper().replace("-", "").replace("_", "")
    numbers = {text.replace("_", ""): number for number, text in _ENCODINGS.items()}
    return numbers.get(wanted, -1)


def size_text(size: int) -> str:
    """A size in the largest unit that leaves a number worth reading.

    >>> size_text(10239), size_text(10240), size_text(-20 * 1024 * 1024)
    ('10239 bytes', '10 kB', '-20 MB')
    """
    if abs(size) < 10 * 1024:
        return f"{size} bytes"
    # PostgreSQL drops all but one bit of the fraction, then rounds that half up.
    halves = _toward_zero(size, 512)
    for unit in _UNITS:
        if abs(halves) < 20 * 1024 - 1 or unit == _UNITS[-1]:
            return f"{_half_rounded(halves)} {unit}"
        halves = _toward_zero(halves, 1024)
    raise AssertionError("the last unit takes every size")


def _numeric_size_text(size: Decimal) -> str:
    return size_text(int(size)) if size.is_finite() else f"{size} bytes"


def _type_names(oids: tuple[int | None, ...]) -> str:
    """Argument types as they stand between a function's parentheses.

    >>> _type_names((23, 25))
    'integer, text'
    """
    return ", ".join(format_type(oid, None) or "???" for oid in oids)


def _toward_zero(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def _half_rounded(halves: int) -> int:
    return (halves + 1) // 2 if halves >= 0 else -((1 - halves) // 2)


def _constant(value: bool | int | str | None) -> Body:
    return lambda *_arguments: value


_TRUE, _FALSE, _NULL, _ZERO = _constant(True), _constant(False), _constant(None), _constant(0)
# What is not counted, as the peer says it.
_UNKNOWN = _constant(-1)
# Objects of these kinds all are in schemas that bare names look into.
_VISIBLE: Final = (
    "type", "function", "operator", "opclass", "opfamily", "collation", "conversion", "ts_config",
    "ts_dict", "ts_parser", "ts_template", "statistics_obj",
)  # fmt: skip
_DEFINITIONS: Final = ("pg_get_indexdef", "pg_get_viewdef")
_FUNCTION_TEXTS: Final = (
    "pg_get_function_result", "pg_get_function_arguments", "pg_get_function_identity_arguments",
    "pg_get_functiondef",
)  # fmt: skip
# Definitions of things that this system does not have.
_NO_DEFINITIONS: Final = (
    "pg_get_constraintdef", "pg_get_ruledef", "pg_get_triggerdef", "pg_get_partkeydef",
    "pg_get_partition_constraintdef", "pg_get_statisticsobjdef_columns", "pg_get_function_sqlbody",
    "pg_tablespace_location",
)  # fmt: skip
# Types whose values name an object; they are kept as numbers and shown by these.
_NAME_OUTPUTS: Final = (
    "regnamespaceout", "regroleout", "regprocedureout", "regoperout", "regoperatorout",
    "regcollationout", "regconfigout", "regdictionaryout",
)  # fmt: skip
_SIZES: Final = ("pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size")
# What has a function that tells who may do what with it.
GUARDED: Final = (
    "database", "schema", "table", "any_column", "sequence", "function", "type", "language",
    "tablespace", "foreign_data_wrapper", "server", "cluster", "connection", "secret",
)  # fmt: skip


def _privilege_rows(what: str) -> list[ScalarFunction]:
    """The role may be left out; role and object are given by name or by oid."""
    name = f"has_{what}_privilege"
    objects = ((TEXT,), (OID,))
    roles: tuple[tuple[SqlType, ...], ...] = ((), (NAME,), (OID,))
    return [
        looked_up(name, (*role, *wanted, TEXT), BOOL, _NULL, fallible=True)
        for role in roles
        for wanted in objects
    ]


def _column_privilege_rows() -> list[ScalarFunction]:
    columns: tuple[tuple[SqlType, ...], ...] = (
        (TEXT, TEXT), (TEXT, INT4), (OID, TEXT), (OID, INT4),
    )  # fmt: skip
    roles: tuple[tuple[SqlType, ...], ...] = ((), (NAME,), (OID,))
    return [
        looked_up("has_column_privilege", (*role, *column, TEXT), BOOL, _NULL, fallible=True)
        for role in roles
        for column in columns
    ]


def _role_rows() -> list[ScalarFunction]:
    """Membership, and what may be done with the environment as a whole."""
    named = (NAME, OID)
    members = [(t, TEXT) for t in named] + [(r, t, TEXT) for r in named for t in named]
    system: list[tuple[SqlType, ...]] = [(TEXT,), (NAME, TEXT), (OID, TEXT)]
    return [
        *(looked_up("pg_has_role", form, BOOL, _NULL, fallible=True) for form in members),
        *(looked_up("has_system_privilege", form, BOOL, _NULL, fallible=True) for form in system),
    ]


def _definition_rows(name: str) -> list[ScalarFunction]:
    second = (OID, INT4, BOOL) if name == "pg_get_indexdef" else (OID, BOOL)
    return [looked_up(name, form, TEXT, _NULL) for form in ((OID,), second)]


def _oid_text(oid: int) -> str:
    return str(oid)


ROWS: Final = (
    ScalarFunction("format_type", (OID, INT4), TEXT, format_type, strict=False),
    total("oidvectortypes", (array_of(OID),), TEXT, _type_names),
    looked_up("pg_get_userbyid", (OID,), NAME, _user_name),
    looked_up("pg_table_is_visible", (OID,), BOOL, _NULL),
    *(looked_up(name, (OID,), TEXT, _oid_text) for name in _NAME_OUTPUTS),
    *(looked_up(name, (OID,), TEXT, _NULL) for name in _FUNCTION_TEXTS),
    looked_up("to_regclass", (TEXT,), REGCLASS, _NULL),
    looked_up("to_regproc", (TEXT,), REGPROC, _NULL),
    looked_up("to_regnamespace", (TEXT,), OID, _NULL),
    looked_up("to_regrole", (TEXT,), OID, _NULL),
    total("to_regtype", (TEXT,), REGTYPE, type_oid),
    looked_up("current_setting", (TEXT,), TEXT, _NULL, fallible=True),
    looked_up("current_setting", (TEXT, BOOL), TEXT, _NULL, fallible=True),
    total("getdatabaseencoding", (), NAME, _constant("UTF8")),
    total("pg_client_encoding", (), NAME, _constant("UTF8")),
    total("pg_describe_object", (OID, OID, INT4), TEXT, _NULL),
    total("pg_get_serial_sequence", (TEXT, TEXT), TEXT, _NULL),
    total("pg_encoding_to_char", (INT4,), NAME, _encoding_name),
    total("pg_char_to_encoding", (NAME,), INT4, _encoding_number),
    total("pg_size_pretty", (INT8,), TEXT, size_text),
    total("pg_size_pretty", (NUMERIC,), TEXT, _numeric_size_text),
    *(total(f"pg_{what}_is_visible", (OID,), BOOL, _TRUE) for what in _VISIBLE),
    *(total(name, form, TEXT, _NULL) for name in _NO_DEFINITIONS for form in ((OID,), (OID, BOOL))),
    *(row for name in _DEFINITIONS for row in _definition_rows(name)),
    *(total(name, (REGCLASS,), INT8, _UNKNOWN) for name in _SIZES),
    total("pg_relation_size", (REGCLASS, TEXT), INT8, _UNKNOWN),
    *(total("pg_database_size", (t,), INT8, _UNKNOWN) for t in (NAME, OID)),
    *(total("pg_tablespace_size", (t,), INT8, _UNKNOWN) for t in (NAME, OID)),
    *(row for what in GUARDED for row in _privilege_rows(what)),
    *_column_privilege_rows(),
    *_role_rows(),
    looked_up("obj_description", (OID,), TEXT, _NULL),
    looked_up("obj_description", (OID, NAME), TEXT, _NULL),
    looked_up("col_description", (OID, INT4), TEXT, _NULL),
    looked_up("shobj_description", (OID, NAME), TEXT, _NULL),
    total("pg_get_expr", (TEXT, OID), TEXT, lambda expression, _relation: expression),
    total(
        "pg_get_expr", (TEXT, OID, BOOL), TEXT, lambda expression, _relation, _pretty: expression
    ),
    total("pg_is_in_recovery", (), BOOL, _FALSE),
    total("pg_my_temp_schema", (), OID, _ZERO),
    total("pg_is_other_temp_schema", (OID,), BOOL, _FALSE),
    total("pg_relation_is_publishable", (REGCLASS,), BOOL, _FALSE),
    total("pg_stat_get_numscans", (OID,), INT8, _UNKNOWN),
)
