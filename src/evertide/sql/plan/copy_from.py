"""COPY ... FROM STDIN: which columns come, and how their text is to be read."""

from typing import Final

from evertide.expr.scalar import Scalar
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import CopyFormat, CopyFromPlan
from evertide.sql.plan.target import column_position, default_of, writable_table
from evertide.sql.resolve import position_of
from evertide.sql.syntax.command import CopyFromStatement
from evertide.sql.syntax.expression import BooleanLiteral, Name, NumberLiteral, StringLiteral
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidParameterValue,
    SqlSyntaxError,
)

# A delimiter among these could be taken for part of an escape or of \N.
_NO_DELIMITERS: Final = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
_TRUTH: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def plan_copy_from(statement: CopyFromStatement, query: QueryContext) -> CopyFromPlan:
    """Rows for a table, that the client sends as lines of text."""
    table = writable_table(statement.target.name, "copy to", query)
    names, at = statement.target.columns, statement.target.at
    targets = [column_position(name, table, at) for name in names]
    for name, target in zip(names, targets, strict=True):
        if targets.count(target) > 1:
            raise DuplicateColumn(
                f'column "{name}" specified more than once', position=position_of(at)
            )
    if not names:
        targets = list(range(table.desc.arity))
    defaults: dict[int, Scalar] = {
        i: default_of(table, i, query) for i in range(table.desc.arity) if i not in targets
    }
    return CopyFromPlan(table.item_id, tuple(targets), defaults, _format(statement))


def _format(statement: CopyFromStatement) -> CopyFormat:
    options: dict[str, Option] = {}
    for option in statement.options:
        if option.name in options:
            raise SqlSyntaxError(
                "conflicting or redundant options", position=position_of(option.at)
            )
        options[option.name] = option
    csv = _is_csv(options.get("FORMAT"))
    quote = _text(options, "QUOTE", '"')
    found = CopyFormat(
        csv=csv,
        delimiter=_text(options, "DELIMITER", "," if csv else "\t"),
        null=_text(options, "NULL", "" if csv else "\\N"),
        header=_header(options.get("HEADER")),
        match_header=_says_match(options.get("HEADER")),
        quote=quote,
        escape=_text(options, "ESCAPE", quote),
    )
    _check(found, options)
    return found


def _check(found: CopyFormat, options: dict[str, Option]) -> None:
    for word, character in {
        "delimiter": found.delimiter,
        "quote": found.quote,
        "escape": found.escape,
    }.items():
        if len(character.encode()) != 1:
            raise FeatureNotSupported(f"COPY {word} must be a single one-byte character")
    for word in ("QUOTE", "ESCAPE"):
        if word in options and not found.csv:
            raise FeatureNotSupported(f"COPY {word} requires CSV mode")
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


def _is_csv(option: Option | None) -> bool:
    if option is None:
        return False
    match option.value:
        case StringLiteral(value=text) | Name(parts=(text,)) if text in ("text", "csv"):
            return text == "csv"
        case StringLiteral(value="binary") | Name(parts=("binary",)):
            raise FeatureNotSupported(
                "COPY format binary is not supported", position=position_of(option.at)
            )
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
