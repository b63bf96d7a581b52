"""Regular expression operators and functions."""

from collections.abc import Iterator
from typing import Final

from evertide.expr.functions.build import Body, partial
from evertide.expr.functions.text import MAX_CHARACTERS
from evertide.expr.functions.type_groups import BPCHAR, TEXT_ARRAY
from evertide.expr.regex.captures import Found, find, is_found
from evertide.expr.regex.program import Program, compile_pattern
from evertide.expr.regex.syntax import Options
from evertide.vocab.datum import Row
from evertide.vocab.errors import InvalidParameterValue, ProgramLimitExceeded
from evertide.vocab.sql_type import BOOL, INT4, TEXT

_SENSITIVE: Final = Options()
_INSENSITIVE: Final = Options(ignore_case=True)


def _matches(text: str, pattern: str) -> bool:
    return is_found(compile_pattern(pattern, _SENSITIVE), text)


def _matches_ignoring_case(text: str, pattern: str) -> bool:
    return is_found(compile_pattern(pattern, _INSENSITIVE), text)


def _differs(text: str, pattern: str) -> bool:
    return not _matches(text, pattern)


def _differs_ignoring_case(text: str, pattern: str) -> bool:
    return not _matches_ignoring_case(text, pattern)


def _options(flags: str, *, with_global: bool = False) -> Options:
    ignore_case = by_line = False
    for flag in flags:
        match flag:
            case "i" | "c":
                ignore_case = flag == "i"
            case "n" | "m" | "s":
                by_line = flag != "s"
            case "g" if with_global:
                pass
            case _:
                raise InvalidParameterValue(f"invalid regular expression flag: {flag}")
    return Options(ignore_case, by_line)


def _all(program: Program, text: str) -> Iterator[Found]:
    """All matches that do not overlap; after an empty one the search goes on a character later."""
    place = 0
    while place <= len(text):
        found = find(program, text, place) if place or is_found(program, text) else None
        if found is None:
            return
        yield found
        place = found.end if found.end > found.start else found.end + 1


def _replace(text: str, pattern: str, replacement: str, flags: str = "") -> str:
    program = compile_pattern(pattern, _options(flags, with_global=True))
    parts, place, length = [], 0, 0
    for found in _all(program, text):
        expanded = _expand(replacement, found)
        length += len(expanded)
        if length > MAX_CHARACTERS:
            raise ProgramLimitExceeded("requested length too large")
        parts += [text[place : found.start], expanded]
        place = found.end
        if "g" not in flags:
            break
    return "".join(parts) + text[place:]


def _expand(replacement: str, found: Found) -> str:
    """`\\1` stands for a group, `\\&` for the whole match, two backslashes for one."""
    if "\\" not in replacement:
        return replacement
    result = []
    characters = iter(replacement)
    for character in characters:
        if character != "\\":
            result.append(character)
            continue
        following = next(characters, "")
        if following == "&":
            result.append(found.group(0) or "")
        elif following.isdigit() and following.isascii():
            number = int(following)
            known = 0 < number < len(found.slots) // 2
            result.append((found.group(number) or "") if known else "")
        else:
            result.append(following if following == "\\" else "\\" + following)
    return "".join(result)


def _groups(program: Program, found: Found) -> tuple[str | None, ...]:
    """The groups, or the whole match if there are none."""
    if program.groups == 0:
        return (found.group(0),)
    return tuple(found.group(number) for number in range(1, program.groups + 1))


def _match(text: str, pattern: str, flags: str = "") -> tuple[str | None, ...] | None:
    if "g" in flags:
        raise InvalidParameterValue('regexp_match() does not support the "global" option')
    program = compile_pattern(pattern, _options(flags))
    found = find(program, text) if is_found(program, text) else None
    return None if found is None else _groups(program, found)


def _substring(text: str, pattern: str) -> str | None:
    """The first group, or the whole match."""
    groups = _match(text, pattern)
    return None if groups is None else groups[0]


def _is_like(text: str, pattern: str, flags: str = "") -> bool:
    return is_found(compile_pattern(pattern, _options(flags)), text)


def _count(text: str, pattern: str) -> int:
    return sum(1 for _ in _all(compile_pattern(pattern, _SENSITIVE), text))


def _split(text: str, pattern: str, flags: str = "") -> tuple[str, ...]:
    """The parts between matches; an empty match beside another one or an end cuts nothing off."""
    parts, place = [], 0
    for found in _all(compile_pattern(pattern, _options(flags)), text):
        if found.end == found.start and found.start in (place, len(text)):
            continue
        parts.append(text[place : found.start])
        place = found.end
    return (*parts, text[place:])


def _position(text: str, pattern: str) -> int:
    """Where the first match begins, from 1; 0 if there is none."""
    program = compile_pattern(pattern, _SENSITIVE)
    found = find(program, text) if is_found(program, text) else None
    return 0 if found is None else found.start + 1


def _whole_match(text: str, pattern: str) -> str | None:
    program = compile_pattern(pattern, _SENSITIVE)
    found = find(program, text) if is_found(program, text) else None
    return None if found is None else found.group(0)


def matches(text: str, pattern: str, flags: str = "") -> Iterator[Row]:
    """The groups of the first match, or with the flag g of each."""
    program = compile_pattern(pattern, _options(flags, with_global=True))
    for found in _all(program, text):
        yield (_groups(program, found),)
        if "g" not in flags:
            return


def group_count(pattern: str) -> int:
    """How many groups a pattern has."""
    return compile_pattern(pattern, _SENSITIVE).groups


def first_groups(pattern: str, text: str) -> tuple[str | None, ...] | None:
    """The groups of the first match of a pattern that has some; None: there is none."""
    return _match(text, pattern)


def split_rows(text: str, pattern: str, flags: str = "") -> Iterator[Row]:
    """The parts between matches, a row each."""
    return ((part,) for part in _split(text, pattern, flags))


_OPERATORS: Final[dict[str, Body]] = {
    "~": _matches,
    "~*": _matches_ignoring_case,
    "!~": _differs,
    "!~*": _differs_ignoring_case,
}
_TWO: Final = (TEXT, TEXT)
_THREE: Final = (TEXT, TEXT, TEXT)

ROWS: Final = (
    *(partial(name, _TWO, BOOL, body) for name, body in _OPERATORS.items()),
    *(partial(name, (BPCHAR, TEXT), BOOL, body) for name, body in _OPERATORS.items()),
    partial("regexp_like", _TWO, BOOL, _is_like),
    partial("regexp_like", _THREE, BOOL, _is_like),
    partial("regexp_count", _TWO, INT4, _count),
    partial("regexp_match", _TWO, TEXT_ARRAY, _match),
    partial("regexp_match", _THREE, TEXT_ARRAY, _match),
    partial("regexp_replace", _THREE, TEXT, _replace),
    partial("regexp_replace", (*_THREE, TEXT), TEXT, _replace),
    partial("regexp_split_to_array", _TWO, TEXT_ARRAY, _split),
    partial("regexp_split_to_array", _THREE, TEXT_ARRAY, _split),
    partial("substring", _TWO, TEXT, _substring),
    partial("regexp_instr", _TWO, INT4, _position),
    partial("regexp_substr", _TWO, TEXT, _whole_match),
)
