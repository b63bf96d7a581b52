"""Arguments for functions whose text means something: units, patterns, encodings, zones."""

from collections.abc import Iterator
from decimal import Decimal

from evertide.expr.functions.row import ScalarFunction
from evertide.vocab.datum import Datum, Interval, reduce_numeric
from evertide.vocab.sql_type import FLOAT8, INT8, INTERVAL, JSONB, NUMERIC, TEXT, SqlType
from tests.expr.lowering_vectors import values_of, vectors

UNITS: list[Datum] = [
    "year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "week",
    "quarter", "decade", "century", "millennium", "dow", "isodow", "doy", "epoch", "julian",
    "isoyear", "timezone", "bogus", "Hours", "mon",
]  # fmt: skip
ZONES: list[Datum] = [
    "UTC", "America/New_York", "europe/berlin", "+02", "-03:30", "EST", "nowhere", "Asia/Kolkata",
]  # fmt: skip
LIKES: list[Datum] = [
    "", "%", "_", "a%", "%c", "a_c", "%b%", "a\\%%", "a%\\\\", "_%_", "ABC", "%ß%", "%%", "日%",
]  # fmt: skip
PATTERNS: list[Datum] = [
    "", "a", "^a", "c$", "^$", "b+", "[a-c]+", "[^a]", "(a|b)c", "a.c", "\\d", "\\w+",
    "[[:alpha:]]+", "(?i)ABC", "x{2}", "a{0,1}b", "^(a)(b)?(c)", "\\s", "(", "*a", "[b-a]",
    "[[:nope:]]", "a|", "()", "\\mhello\\M", "o w", "l{2,}", ".*", "a*?",
]  # fmt: skip
TEMPLATES: list[Datum] = [
    "", "YYYY-MM-DD HH24:MI:SS.US", "DAY Day day DY Dy dy MONTH Month month RM rm MON Mon mon",
    "FMDAY FMDay FMday FMMONTH FMMonth FMmonth FMRM", "Y,YYY YYYY YYY YY Y CC Q MM WW DDD DD D J",
    "FMYYYY FMYYY FMYY FMCC FMQ FMMM FMWW FMDDD FMDD FMD FMJ", "HH HH12 HH24 MI SS SSSS MS US",
    '"HH:MI is" HH:MI "\\"quoted\\""', "HH24--text--MI", "YYYYTH DDth Jth HH24th",
    "W IW IYYY IDDD ID", "HH12:MI AM pm a.m. P.M. BC a.d.", "yyyy-mm-dd", "FF1 FF3 FF6",
    "TZ tz TZH:TZM OF", "x\\y",
]  # fmt: skip
DOCUMENTS: list[Datum] = [
    '{"a":[1,2,{"b":null}],"c":"x"}', "[1,[2,3],4]", "{}", "[]", '"scalar"', '{"a":{"b":{"c":1}}}',
    '[{"a":1},{"b":[]}]',
]  # fmt: skip
PATHS: list[Datum] = [
    (), ("a",), ("a", "1"), ("a", "-1"), ("a", "-9"), ("a", "9"), ("a", "2", "b"), ("a", "b", "c"),
    ("0",), ("1", "0"), ("-1",), ("-4",), ("7",), ("x",), ("x", "y"), ("c", "d"), ("1", "z"),
    ("a", None), (None,), ("0", "a"), (" 1",), ("+1",), ("1.5",), ("99999999999",),
]  # fmt: skip
LENGTHS: list[Datum] = [0, 1, -1, 2, 3, -2, 5, 100, 2**31 - 1, -(2**31)]
SPECIAL: dict[tuple[str, int], list[Datum]] = {
    **{(name, 0): UNITS for name in ("date_trunc", "extract", "date_part")},
    ("timezone", 0): ZONES,
    ("array_fill", 1): [(), (0,), (1,), (3,), (None,)],
    ("array_fill", 2): [(1,), (1, 1), (None,)],
    ("date_trunc", 2): ZONES,
    **{(name, 1): LIKES for name in ("~~", "~~*", "!~~", "!~~*")},
    ("like_escape", 0): [*LIKES, "a!%b", "!"],
    ("like_escape", 1): ["!", "", "\\", "xx"],
    **{(name, 1): PATTERNS for name in ("~", "~*", "!~", "!~*", "regexp_match", "regexp_like")},
    **{(name, 1): PATTERNS for name in ("regexp_replace", "regexp_count")},
    ("regexp_split_to_array", 1): PATTERNS,
    ("regexp_replace", 2): ["", "X", "<\\1>", "\\&\\&", "\\\\", "$1"],
    ("regexp_replace", 3): ["", "g", "i", "gi", "z"],
    **{(name, 2): ["", "i", "n", "z"] for name in ("regexp_match", "regexp_like")},
    ("regexp_split_to_array", 2): ["", "i"],
    ("encode", 1): ["hex", "base64", "escape", "HEX", "bad"],
    ("decode", 0): [
        "",
        "00ff",
        "YWJj",
        "YWJ",
        "a\\000b",
        "zz",
        "0",
        "\\xff",
        "a b",
        "YQ==",
        "Y Q==",
    ],
    ("decode", 1): ["hex", "base64", "escape", "bad"],
    ("normalize", 1): ["NFC", "nfd", "NFKC", "NFKD", "bad"],
    ("parse_ident", 0): [
        "a",
        "A.b",
        '"A b".c',
        "a..b",
        "",
        ".a",
        "a.",
        " a . b ",
        '"a""b"',
        "1a",
        "a1$",
        "a()",
        "é.ß",
        '""',
    ],
    ("repeat", 1): LENGTHS,
    ("to_char", 1): TEMPLATES,
    **{(name, place): LENGTHS for name in ("substr", "substring") for place in (1, 2)},
    ("convert_from", 1): ["utf8", "latin1", "bad", "UTF-8"],
    ("convert_to", 1): ["utf8", "latin1", "bad"],
    **{(name, 1): ["md5", "SHA256", "bad"] for name in ("digest",)},
    ("hmac", 2): ["md5", "SHA256", "bad"],
    ("length", 1): ["utf8", "big5", "iso-8859-5", "bad"],
    ("lpad", 1): LENGTHS[:8],
    ("rpad", 1): LENGTHS[:8],
    ("chr", 0): [0, 1, 65, 0x20AC, 0x10FFFF, 0x110000, 0xD800, -1],
    ("?", 1): ["a", "b", "", "k"],
    ("->", 1): ["a", "b", "c", "", "0"],
    ("->>", 1): ["a", "b", "c", "", "0"],
    ("split_part", 1): ["", "b", " ", "l", "lo"],
    ("split_part", 2): [1, 2, -1, -2, 0, 99],
    ("array_to_string", 1): ["", ",", "ab"],
    ("string_to_array", 1): ["", ",", "b", "l"],
    ("translate", 1): ["", "abc", "aa", "日l"],
    ("translate", 2): ["", "x", "xyz"],
    ("make_date", 0): [2024, 1, -1, 0, 5874897, -4714, 9999999],
    ("make_date", 1): [1, 2, 11, 12, 13, 0],
    ("make_date", 2): [1, 24, 28, 29, 30, 31, 0],
    ("make_timestamp", 0): [2024, -1, 0, 290000],
    ("make_timestamp", 1): [1, 2, 12, 13],
    ("make_timestamp", 2): [1, 29, 30, 31],
    ("make_timestamp", 3): [0, 23, 24, 25],
    ("make_timestamp", 4): [0, 59, 60],
    ("make_timestamp", 5): [0.0, 59.999999, 60.0, 1.5, 61.0, -1.0],
    ("make_time", 0): [0, 23, 24, 25, -1],
    ("make_time", 1): [0, 59, 60],
    ("make_time", 2): [0.0, 59.999999, 60.0, 1.5, 61.0],
    **{(name, 0): DOCUMENTS for name in ("jsonb_set", "jsonb_insert", "#-")},
    **{(name, 1): PATHS for name in ("jsonb_set", "jsonb_insert", "#-")},
    **{(name, 0): DOCUMENTS for name in ("jsonb_extract_path", "jsonb_extract_path_text")},
    **{
        (name, place): ["a", "b", "c", "0", "1", "-1", "x"]
        for name in ("jsonb_extract_path", "jsonb_extract_path_text")
        for place in (1, 2, 3)
    },
    ("jsonb_object", 0): [("a", "b"), ("a", "1", "a", None), ("a",), (None, "b"), (), ("k", "l")],
    ("jsonb_object", 1): [("1", "2"), (None, "x"), ("1",), ()],
    ("width_bucket", 0): [0, 1, 5, 9, 10, 11, -3],
    ("width_bucket", 1): [0, 10, 0, 1],
    ("width_bucket", 2): [10, 0, 5, 1],
    ("width_bucket", 3): [5, 1, 0, -1, 3, 2**31 - 1],
    ("factorial", 0): [0, 1, 5, 20, 33, 34, -1, 40],
    ("trim_array", 1): [0, 1, 2, -1, 99],
    **{(name, 1): [0, 1, 2, -1, 7, 8] for name in ("set_byte", "set_bit", "get_bit", "get_byte")},
    ("set_bit", 2): [0, 1, 2, -1],
    ("set_byte", 2): [0, 255, 256, -1, 65],
    **{(name, 1): PATTERNS for name in ("regexp_instr", "regexp_substr")},
    ("pg_encoding_to_char", 0): [0, 6, 8, 99],
    ("format_type", 1): [-1, 0, 4, 14, (10 << 16 | 2) + 4],
}


def arguments_for(function: ScalarFunction) -> Iterator[tuple[Datum, ...]]:
    """Argument tuples that make the function do its work."""
    types = function.arguments
    if function.variadic:
        types += types[-1:] * 2
    special = {p: v for (name, p), v in SPECIAL.items() if name == function.name}
    if function.name == "substring" and types[1:] == (TEXT,):
        special = {1: PATTERNS}
    if function.name == "timezone":
        special = {p: v for p, v in special.items() if types[p] == TEXT}
    if types == (JSONB, INT8):
        special = {1: [0, 1, -1, 2, 5, -5]}
    rows = vectors(types, limit=max(60, *(3 * len(v) for v in special.values()), 60))
    for turn, row in enumerate(rows):
        changed = list(row)
        for position, values in special.items():
            if position < len(changed) and changed[position] is not None:
                value = values[(turn + turn // len(values) * position) % len(values)]
                changed[position] = _number(types[position], value)
        yield tuple(changed)
    if INTERVAL in types and FLOAT8 in types:
        yield from _interval_products(function)


def _number(sql_type: SqlType, value: Datum) -> Datum:
    """Integers as numbers of the type that is asked for."""
    if type(value) is not int or sql_type not in (FLOAT8, NUMERIC):
        return value
    return float(value) if sql_type == FLOAT8 else reduce_numeric(Decimal(value))


def _interval_products(function: ScalarFunction) -> Iterator[tuple[Datum, ...]]:
    for factor in (0.5, 1.5, -2.0, 1 / 3, 0.0):
        for interval in values_of(INTERVAL)[:7]:
            pair: tuple[Datum, ...] = (interval, factor)
            yield pair if function.arguments[0] == INTERVAL else pair[::-1]
    assert isinstance(interval, Interval)
