"""COPY's bytes cut into lines and lines into fields, as PostgreSQL cuts them; pure.

Most data has no escapes and no quotes: then a stretch of lines is split by the delimiter all at
once. Only lines that are out of the ordinary are looked at one by one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.sql.plan.plans import CopyFormat
from evertide.vocab.errors import BadCopyFileFormat, CharacterNotInRepertoire, SqlError

Field: TypeAlias = str | None

END_OF_DATA: Final = "\\."
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_PLAIN_ESCAPES: Final = {
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines, each of which is a row; `number` is that of the last line before them.

    A quoted line break makes one row of several lines: then `ends` has the number of the last line
    of each row.
    """

    texts: Sequence[str]
    number: int
    ends: Sequence[int] | None = None

    def number_of(self, row: int) -> int:
        """The line that errors of a row name."""
        return self.number + row + 1 if self.ends is None else self.ends[row]


@dataclass(frozen=True, slots=True)
class Cut:
    """Fields by columns; `error` is what is wrong with the row after the last of them."""

    columns: Sequence[Sequence[Field]]
    rows: int
    error: SqlError | None = None
    # Its fields, where it has too few: a mistake in them comes before those that are missing.
    present: Sequence[Field] = ()


class LineCutter:
    """Takes bytes as they come and gives whole lines; keeps what is not whole yet."""

    def __init__(self, form: CopyFormat) -> None:
        self._form = form
        self._rest = b""
        self._break: str | None = None
        self._number = 0
        self._ended = False

    def feed(self, received: bytes, *, last: bool = False) -> Lines:
        """The lines that are whole by now; with `last` all there are."""
        if self._ended:
            return Lines((), self._number)
        whole = self._rest + received
        end = len(whole) if last else whole.rfind(b"\n") + 1
        if not last and not end and b"\r" in whole[:-1] and self._break in (None, "\r"):
            end = whole.rfind(b"\r", 0, len(whole) - 1) + 1
        text, self._rest = _decoded(whole[:end], self._number), whole[end:]
        return self._lines(text, last=last)

    def _lines(self, text: str, *, last: bool) -> Lines:
        if not text:
            return Lines((), self._number)
        if self._break is None:
            first = re.search("\r\n|\n|\r", text)
            self._break = "\n" if first is None else first[0]
        lines = text.split(self._break)
        # Behind the last break there is nothing, or a line that has not come whole.
        behind = lines.pop()
        if behind and last:
            lines.append(behind)
        elif behind:
            self._rest = behind.encode() + self._rest
        if END_OF_DATA in lines:
            lines = lines[: lines.index(END_OF_DATA)]
            self._ended, self._rest = True, b""
        end = None if not (last or self._ended) else "" if behind else self._break
        return self._joined(lines, end)

    def _joined(self, lines: list[str], end: str | None) -> Lines:
        """Lines whose break was escaped or quoted are one; the last may still wait for its end.

        `end` is what stood behind all lines; None: more may come.
        """
        before = self._number
        joint = self._break or "\n"
        marks = self._form.quote if self._form.csv else "\\"
        if not any(marks in line for line in lines):
            self._number += len(lines)
            return Lines(lines, before)
        rows: list[str] = []
        ends: list[int] = []
        open_rows: list[str] = []
        for line in lines:
            open_rows.append(line)
            joined = joint.join(open_rows)
            if self._is_whole(joined):
                rows.append(joined)
                ends.append(self._count(len(open_rows) - 1))
                open_rows = []
        if open_rows and end is not None:
            rows.append(joint.join(open_rows) + end)
            ends.append(self._count(len(open_rows) - 1))
        elif open_rows:
            self._rest = (joint.join(open_rows) + joint).encode() + self._rest
        return Lines(rows, before, ends)

    def _count(self, breaks: int) -> int:
        """One row more. PostgreSQL counts breaks within quotes, except, while it does not know yet
        that lines end with a bare newline, those of the first row."""
        counted = self._form.csv and (self._number > 0 or self._break != "\n")
        self._number += 1 + (breaks if counted else 0)
        return self._number

    def _is_whole(self, line: str) -> bool:
        if not self._form.csv:
            return (len(line) - len(line.rstrip("\\"))) % 2 == 0
        if self._form.escape != self._form.quote:
            line = re.sub(re.escape(self._form.escape) + ".", "", line, flags=re.DOTALL)
        return line.count(self._form.quote) % 2 == 0


def _decoded(received: bytes, number: int) -> str:
    try:
        text = received.decode()
    except UnicodeDecodeError as error:
        bad = " ".join(f"0x{byte:02x}" for byte in received[error.start : error.end])
        line = number + received.count(b"\n", 0, error.start) + 1
        raise CharacterNotInRepertoire(
            f'invalid byte sequence for encoding "UTF8": {bad}',
            context=f"line {line}",
        ) from None
    if "\0" in text:
        raise BadCopyFileFormat('invalid byte sequence for encoding "UTF8": 0x00')
    return text


def cut_fields(lines: Sequence[str], names: Sequence[str], form: CopyFormat) -> Cut:
    """The fields of each line, as many as there are names."""
    marks = form.quote if form.csv else "\\"
    delimiters = len(names) - 1
    odd = any(
        line.count(form.delimiter) != delimiters or "\r" in line or "\n" in line for line in lines
    )
    text = form.delimiter.join(lines)
    if odd or not names or (marks in text and not (not form.csv and _only_nulls(text, form))):
        return _cut_one_by_one(lines, names, form)
    fields: list[Field] = [*text.split(form.delimiter)] if lines else []
    if form.null in fields:
        fields = [None if field == form.null else field for field in fields]
    return Cut([fields[i :: len(names)] for i in range(len(names))], len(lines))


def _only_nulls(text: str, form: CopyFormat) -> bool:
    """Whether every backslash belongs to a field that stands for NULL."""
    return form.null == "\\N" and text.count("\\") == text.count("\\N")


def _cut_one_by_one(lines: Sequence[str], names: Sequence[str], form: CopyFormat) -> Cut:
    rows: list[list[Field]] = []
    error: SqlError | None = None
    row: list[Field] = []
    for line in lines:
        row = []
        try:
            row = _csv_fields(line, form) if form.csv else _text_fields(line, form)
            if not names and not line:
                row = []
            _check_count(row, names)
        except SqlError as found:
            error = found
            break
        rows.append(row)
    columns = [[row[i] for row in rows] for i in range(len(names))]
    present = row if error is not None and len(row) < len(names) else ()
    return Cut(columns, len(rows), error, present)


def _check_count(row: Sequence[Field], names: Sequence[str]) -> None:
    if len(row) > len(names):
        raise BadCopyFileFormat("extra data after last expected column")
    if len(row) < len(names):
        raise BadCopyFileFormat(f'missing data for column "{names[len(row)]}"')


def _text_fields(line: str, form: CopyFormat) -> list[Field]:
    if "\r" in line.replace("\\\r", ""):
        raise BadCopyFileFormat(
            "literal carriage return found in data",
            hint='Use "\\r" to represent carriage return.',
        )
    if "\n" in line.replace("\\\n", ""):
        raise BadCopyFileFormat(
            "literal newline found in data", hint='Use "\\n" to represent newline.'
        )
    fields = line.split(form.delimiter)
    if "\\" in line:
        fields = _rejoined(fields, form.delimiter)
    return [None if f == form.null else _unescaped(f) if "\\" in f else f for f in fields]


def _rejoined(fields: list[str], delimiter: str) -> list[str]:
    """A delimiter after a backslash is data."""
    found: list[str] = []
    waiting = ""
    for field in fields:
        whole = waiting + field
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            waiting = whole + delimiter
        else:
            found.append(whole)
            waiting = ""
    return [*found, waiting[:-1]] if waiting else found


def _unescaped(field: str) -> str:
    def meant(escape: re.Match[bytes]) -> bytes:
        octal, digits, other = escape.groups()
        if octal is not None:
            return bytes([int(octal, 8) & 0xFF])
        if digits is not None:
            return bytes([int(digits, 16)])
        return _PLAIN_ESCAPES.get(other, other)

    return _decoded(_ESCAPE.sub(meant, field.encode()), 0)


def _csv_fields(line: str, form: CopyFormat) -> list[Field]:
    """Quotes may begin and end anywhere in a field; one that has any is never NULL."""
    fields: list[Field] = []
    at = 0
    while True:
        text, at, quoted = _csv_field(line, at, form)
        fields.append(None if not quoted and text == form.null else text)
        if at >= len(line):
            return fields
        at += 1
        if at == len(line):
            return [*fields, None if form.null == "" else ""]


def _csv_field(line: str, at: int, form: CopyFormat) -> tuple[str, int, bool]:
    """One field from `at` on, where it ends, and whether quotes were in it."""
    parts: list[str] = []
    quoted = False
    while at < len(line) and line[at] != form.delimiter:
        if line[at] != form.quote:
            ends = [e for e in (line.find(form.delimiter, at), line.find(form.quote, at)) if e >= 0]
            end = min(ends, default=len(line))
            parts.append(line[at:end])
            at = end
            continue
        quoted = True
        inside, at = _csv_quoted(line, at + 1, form)
        parts.append(inside)
    return "".join(parts), at, quoted


def _csv_quoted(line: str, at: int, form: CopyFormat) -> tuple[str, int]:
    parts: list[str] = []
    start = at
    while at < len(line):
        character = line[at]
        if character == form.escape and line[at + 1 : at + 2] in (form.escape, form.quote):
            parts.append(line[start:at] + line[at + 1])
            at += 2
            start = at
        elif character == form.quote:
            return "".join([*parts, line[start:at]]), at + 1
        else:
            ends = [e for e in (line.find(form.quote, at), line.find(form.escape, at)) if e >= 0]
            end = min(ends, default=len(line))
            at = end if end > at else at + 1
    raise BadCopyFileFormat("unterminated CSV quoted field")
