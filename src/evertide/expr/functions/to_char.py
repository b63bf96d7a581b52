"""to_char of timestamps: a template whose patterns are replaced by fields."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from evertide.expr.civil import civil_from_days, days_from_civil
from evertide.expr.functions.build import Body, total
from evertide.expr.functions.datetime_arithmetic import is_infinite
from evertide.expr.functions.datetime_fields import iso_week
from evertide.vocab.datum import MICROS_PER_DAY
from evertide.vocab.sql_type import TEXT, TIMESTAMP, TIMESTAMPTZ

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS: Final = (
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
)  # fmt: skip
_ROMAN: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
_LONGEST_NAME: Final = 9
_ORDINALS: Final = {1: "st", 2: "nd", 3: "rd"}


@dataclass(frozen=True, slots=True)
class _Moment:
    """A timestamp taken apart once for all patterns."""

    days: int
    year: int
    month: int
    day: int
    seconds: int
    micros: int
    zoned: bool

    @property
    def shown_year(self) -> int:
        return _shown(self.year)

    @property
    def iso_year(self) -> int:
        return iso_week(self.days)[0]

    @property
    def day_of_year(self) -> int:
        return self.days - days_from_civil(self.year, 1, 1) + 1

    @property
    def weekday(self) -> int:
        return (self.days + 4) % 7

    @property
    def hour(self) -> int:
        return self.seconds // 3600


def _shown(year: int) -> int:
    """Years before Christ are shown without a sign."""
    return year if year > 0 else 1 - year


Number: TypeAlias = Callable[[_Moment], int]


def _century(moment: _Moment) -> int:
    year = moment.year
    return (year + 99) // 100 if year > 0 else -((100 - year) // 100)


# pattern: (its value, the width that it is filled up to with zeros)
_NUMBERS: Final[dict[str, tuple[Number, int]]] = {
    "HH12": (lambda m: m.hour % 12 or 12, 2),
    "HH24": (lambda m: m.hour, 2),
    "HH": (lambda m: m.hour % 12 or 12, 2),
    "MI": (lambda m: m.seconds // 60 % 60, 2),
    "SSSSS": (lambda m: m.seconds, 0),
    "SSSS": (lambda m: m.seconds, 0),
    "SS": (lambda m: m.seconds % 60, 2),
    "MS": (lambda m: m.micros // 1000, 3),
    "US": (lambda m: m.micros, 6),
    "FF1": (lambda m: m.micros // 100_000, 1),
    "FF2": (lambda m: m.micros // 10_000, 2),
    "FF3": (lambda m: m.micros // 1000, 3),
    "FF4": (lambda m: m.micros // 100, 4),
    "FF5": (lambda m: m.micros // 10, 5),
    "FF6": (lambda m: m.micros, 6),
    "YYYY": (lambda m: m.shown_year, 4),
    "YYY": (lambda m: m.shown_year % 1000, 3),
    "YY": (lambda m: m.shown_year % 100, 2),
    "Y": (lambda m: m.shown_year % 10, 1),
    "IYYY": (lambda m: _shown(m.iso_year), 4),
    "IYY": (lambda m: _shown(m.iso_year) % 1000, 3),
    "IY": (lambda m: _shown(m.iso_year) % 100, 2),
    "I": (lambda m: _shown(m.iso_year) % 10, 1),
    "MM": (lambda m: m.month, 2),
    "DDD": (lambda m: m.day_of_year, 3),
    "IDDD": (lambda m: (iso_week(m.days)[1] - 1) * 7 + (m.days + 3) % 7 + 1, 3),
    "DD": (lambda m: m.day, 2),
    "ID": (lambda m: (m.days + 3) % 7 + 1, 1),
    "D": (lambda m: m.weekday + 1, 1),
    "WW": (lambda m: (m.day_of_year - 1) // 7 + 1, 2),
    "IW": (lambda m: iso_week(m.days)[1], 2),
    "W": (lambda m: (m.day - 1) // 7 + 1, 1),
    "CC": (_century, 2),
    "J": (lambda m: m.days + 2_440_588, 0),
    "Q": (lambda m: (m.month - 1) // 3 + 1, 1),
}


def _cased(spell: Callable[[str], str]) -> dict[str, Callable[[_Moment], str]]:
    """Names in one of the three cases, as their patterns are spelled."""
    return {
        spell("month"): lambda m: spell(_MONTHS[m.month - 1]),
        spell("mon"): lambda m: spell(_MONTHS[m.month - 1][:3]),
        spell("day"): lambda m: spell(_DAYS[m.weekday]),
        spell("dy"): lambda m: spell(_DAYS[m.weekday][:3]),
    }


def _half(moment: _Moment) -> str:
    return "am" if moment.hour < 12 else "pm"


def _era(moment: _Moment) -> str:
    return "ad" if moment.year > 0 else "bc"


def _dotted(text: str) -> str:
    return "".join(f"{letter}." for letter in text)


_WORDS: Final[dict[str, Callable[[_Moment], str]]] = {
    **_cased(str.upper),
    **_cased(str.title),
    **_cased(str.lower),
    **dict.fromkeys(("am", "pm"), _half),
    **dict.fromkeys(("AM", "PM"), lambda m: _half(m).upper()),
    **dict.fromkeys(("a.m.", "p.m."), lambda m: _dotted(_half(m))),
    **dict.fromkeys(("A.M.", "P.M."), lambda m: _dotted(_half(m)).upper()),
    **dict.fromkeys(("ad", "bc"), _era),
    **dict.fromkeys(("AD", "BC"), lambda m: _era(m).upper()),
    **dict.fromkeys(("a.d.", "b.c."), lambda m: _dotted(_era(m))),
    **dict.fromkeys(("A.D.", "B.C."), lambda m: _dotted(_era(m)).upper()),
    "RM": lambda m: _ROMAN[m.month - 1],
    "rm": lambda m: _ROMAN[m.month - 1].lower(),
    "TZ": lambda m: "UTC" if m.zoned else "",
    "tz": lambda m: "utc" if m.zoned else "",
    "TZH": lambda _moment: "+00",
    "TZM": lambda _moment: "00",
    "OF": lambda _moment: "+00",
}
_WIDTHS: Final = {
    **dict.fromkeys(("MONTH", "Month", "month", "DAY", "Day", "day"), _LONGEST_NAME),
    "RM": 4,
    "rm": 4,
}


def _alternatives() -> str:
    """All patterns, longest first; numbers in any case."""
    numbers = [*_NUMBERS, "Y,YYY"]
    spelled = {*numbers, *(n.lower() for n in numbers), *_WORDS}
    longest_first = sorted(spelled, key=lambda pattern: (-len(pattern), pattern))
    return "|".join(map(re.escape, longest_first))


_TOKEN: Final = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)(?:"|$)'
    r'|\\(?P<escaped>")'
    rf"|(?P<fill>FM|fm)?(?P<pattern>{_alternatives()})(?P<ordinal>TH|th)?",
    re.DOTALL,
)
Piece: TypeAlias = str | Callable[[_Moment], str]


@lru_cache(maxsize=256)
def _pieces(template: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    position = 0
    for matched in _TOKEN.finditer(template):
        pieces.append(template[position : matched.start()])
        position = matched.end()
        pieces.append(_piece(matched))
    return (*pieces, template[position:])


def _piece(matched: re.Match[str]) -> Piece:
    if matched.group("escaped"):
        return '"'
    pattern = matched.group("pattern")
    if pattern is None:
        return re.sub(r"\\(.)", r"\1", matched.group("quoted"), flags=re.DOTALL)
    compact, ordinal = matched.group("fill") is not None, matched.group("ordinal")
    if pattern in _WORDS:
        return _word(pattern, compact=compact, suffix=ordinal or "")
    if pattern.upper() == "Y,YYY":
        return lambda moment: f"{moment.shown_year // 1000},{moment.shown_year % 1000:03}"
    return _number(pattern.upper(), compact=compact, ordinal=ordinal)


def _word(pattern: str, *, compact: bool, suffix: str) -> Piece:
    """Words take no ordinal: letters after them are only letters."""
    write, width = _WORDS[pattern], 0 if compact else _WIDTHS.get(pattern, 0)
    return lambda moment: write(moment).ljust(width) + suffix


def _number(pattern: str, *, compact: bool, ordinal: str | None) -> Piece:
    compute, width = _NUMBERS[pattern]
    digits = 0 if compact else width

    def write(moment: _Moment) -> str:
        value = compute(moment)
        sign = "-" if value < 0 else ""
        text = f"{sign}{abs(value):0{digits}}"
        return text + (_ordinal(abs(value), ordinal) if ordinal else "")

    return write


def _ordinal(value: int, spelled: str) -> str:
    suffix = "th" if value // 10 % 10 == 1 else _ORDINALS.get(value % 10, "th")
    return suffix.upper() if spelled == "TH" else suffix


def _to_char(*, zoned: bool) -> Body:
    def body(micros: int, template: str) -> str | None:
        if is_infinite(micros) or not template:
            return None
        days, micros_of_day = divmod(micros, MICROS_PER_DAY)
        seconds, fraction = divmod(micros_of_day, 1_000_000)
        moment = _Moment(days, *civil_from_days(days), seconds, fraction, zoned)
        return "".join(
            piece if isinstance(piece, str) else piece(moment) for piece in _pieces(template)
        )

    return body


ROWS: Final = (
    total("to_char", (TIMESTAMP, TEXT), TEXT, _to_char(zoned=False)),
    total("to_char", (TIMESTAMPTZ, TEXT), TEXT, _to_char(zoned=True)),
)
