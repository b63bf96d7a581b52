"""The options of COPY: how rows are to be read, or written."""

from collections.abc import Sequence
from typing import Final

from evertide.sql.plan.plans import CopyFormat
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import BooleanLiteral, Name, NumberLiteral, StringLiteral
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import (
    InvalidParameterValue,
    SqlError,
    SqlSyntaxError,
)

_KINDS: Final = ("text", "csv", "binary")
# A delimiter among these could be taken for part of an escape or of \N.
_NO_DELIMITERS: Final = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
_TRUTH: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


class CopyOptionRefused(SqlError):
    """Programs know these refusals by a code that says little; the message says all."""

    sqlstate = "XX000"


def copy_to_format(given: Sequence[Option]) -> CopyFormat:
    """The same for COPY ... TO, which takes fewer options."""
    for option in given:
        if option.name == "ESCAPE" or (option.name == "HEADER" and _header(option)):
            raise CopyOptionRefused(
                f"COPY TO does not support {option.name} option yet",
                position=position_of(option.at),
            )
    return copy_format(given)


def copy_format(given: Sequence[Option]) -> CopyFormat:
    """The format that a statement's options ask for."""
    options: dict[str, Option] = {}
    for option in given:
        if option.name in options:
            raise SqlSyntaxError(
                "conflicting or redundant options", position=position_of(option.at)
            )
        options[option.name] = option
    kind = _kind(options.get("FORMAT"))
    csv = kind == "csv"
    quote = _text(options, "QUOTE", '"')
    found = CopyFormat(
        csv=csv,
        delimiter=_text(options, "DELIMITER", "," if csv else "\t"),
        null=_text(options, "NULL", "" if csv else "\\N"),
        header=_header(options.get("HEADER")),
        match_header=_says_match(options.get("HEADER")),
        quote=quote,
        escape=_text(options, "ESCAPE", quote),
        binary=kind == "binary",
    )
    _check(found, options)
    return found


def _check(found: CopyFormat, options: dict[str, Option]) -> None:
    for word in ("DELIMITER", "NULL", "HEADER"):
        if found.binary and word in options:
            raise SqlSyntaxError(f"cannot specify {word} in BINARY mode")
    asked = {"quote": "QUOTE" in options, "escape": "ESCAPE" in options, "HEADER": found.header}
    for word, is_asked in asked.items():
        if is_asked and not found.csv:
            raise CopyOptionRefused(f"COPY {word} available only in CSV mode")
    for word, character in {
        "delimiter": found.delimiter,
        "quote": found.quote,
        "escape": found.escape,
    }.items():
        if len(character.encode()) != 1:
            raise CopyOptionRefused(f"COPY {word} must be a single one-byte character")
    for word, text in {"delimiter": found.delimiter, "null representation": found.null}.items():
        if "\n" in text or "\r" in text:
            raise InvalidParameterValue(f"COPY {word} cannot be newline or carriage return")
    if not found.csv and found.delimiter in _NO_DELIMITERS:
        raise InvalidParameterValue(f'COPY delimiter cannot be "{found.delimiter}"')
    if found.csv and found.delimiter == found.quote:
        raise InvalidParameterValue("COPY delimiter and quote must be different")
    if found.delimiter in found.null:
        raise InvalidParameterValue(
            "COPY delimiter character must not appear in the NULL specification"
        )


def _kind(option: Option | None) -> str:
    """text, csv or binary."""
    if option is None:
        return "text"
    match option.value:
        case StringLiteral(value=text) | Name(parts=(text,)) if text in _KINDS:
            return text
        case StringLiteral(value=text) | Name(parts=(text,)):
            raise InvalidParameterValue(
                f'COPY format "{text}" not recognized', position=position_of(option.at)
            )
    raise InvalidParameterValue("COPY format must be a word", position=position_of(option.at))


def _text(options: dict[str, Option], name: str, otherwise: str) -> str:
    option = options.get(name)
    if option is None:
        return otherwise
    match option.value:
        case StringLiteral(value=text) | Name(parts=(text,)):
            return text
    raise SqlSyntaxError(f"COPY option {name} requires a string", position=position_of(option.at))


def _header(option: Option | None) -> bool:
    if option is None:
        return False
    match option.value:
        case None:
            return True
        case BooleanLiteral(value=value):
            return value
        case StringLiteral(value=text) | Name(parts=(text,)) | NumberLiteral(text) if (
            text.lower() in _TRUTH
        ):
            return _TRUTH[text.lower()]
        case _ if _says_match(option):
            return True
    raise SqlSyntaxError(
        'header requires a Boolean value or "match"', position=position_of(option.at)
    )


def _says_match(option: Option | None) -> bool:
    match None if option is None else option.value:
        case StringLiteral(value=text) | Name(parts=(text,)):
            return text.lower() == "match"
    return False
