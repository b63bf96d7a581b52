"""Goal: COPY's rows do not depend on how the network cut the bytes, nor on the path they took.

Method: the same bytes, cut at random and in every place, give the same lines; lines give the same
fields whether they are cut at once or one by one.
"""

from random import Random

import pytest

from evertide.adapter.writing import copy_lines
from evertide.adapter.writing.copy_lines import LineCutter, cut_fields
from evertide.sql.plan.plans import CopyFormat
from evertide.vocab.errors import BadCopyFileFormat, CharacterNotInRepertoire

TEXT = CopyFormat(
    csv=False, delimiter="\t", null="\\N", header=False, match_header=False, quote='"', escape='"'
)
CSV = CopyFormat(
    csv=True, delimiter=",", null="", header=False, match_header=False, quote='"', escape='"'
)
DATA = {
    "text": (TEXT, "1\ta\n2\t\\N\n\\t\té☃\n4\tescaped\\\nbreak\n5\t\\\\\n"),
    "no end": (TEXT, "1\ta\n2\tb"),
    "windows": (TEXT, "1\ta\r\n2\tb\r\n"),
    "marker": (TEXT, "1\ta\n\\.\n2\tb\n"),
    "csv": (CSV, '1,"a ""b"" c"\n2,"two\nlines"\n3,\n4,""\n5,plain\n6,x"y"z\n'),
    "empty": (TEXT, ""),
}


def lines_of(form: CopyFormat, pieces: list[bytes]) -> tuple[list[str], list[int]]:
    cutter = LineCutter(form)
    texts: list[str] = []
    numbers: list[int] = []
    for piece in [*pieces, None]:
        lines = cutter.feed(piece or b"", last=piece is None)
        texts += lines.texts
        numbers += [lines.number_of(row) for row in range(len(lines.texts))]
    return texts, numbers


@pytest.mark.parametrize("name", DATA)
def test_lines_are_the_same_however_they_are_cut(name: str) -> None:
    form, text = DATA[name]
    whole = text.encode()
    expected = lines_of(form, [whole])
    for place in range(len(whole) + 1):
        assert lines_of(form, [whole[:place], whole[place:]]) == expected
    assert lines_of(form, [bytes([byte]) for byte in whole]) == expected
    for seed in range(20):
        rng = Random(seed)
        cuts = sorted(rng.randrange(len(whole) + 1) for _ in range(4))
        bounds = list(zip([0, *cuts], [*cuts, len(whole)], strict=True))
        assert lines_of(form, [whole[a:b] for a, b in bounds]) == expected


@pytest.mark.parametrize("form", [TEXT, CSV], ids=["text", "csv"])
def test_fields_are_the_same_by_both_paths(form: CopyFormat) -> None:
    rng = Random(3)
    fields = ["", "a", "\\N", "12", "é", "a b", "N"]
    lines = [form.delimiter.join(rng.choice(fields) for _ in range(3)) for _ in range(200)]
    at_once = cut_fields(lines, ["a", "b", "c"], form)
    one_by_one = copy_lines._cut_one_by_one(lines, ["a", "b", "c"], form)
    assert [list(column) for column in at_once.columns] == one_by_one.columns
    assert at_once.error is None
    assert one_by_one.error is None


def test_fields_of_csv() -> None:
    _, text = DATA["csv"]
    texts, numbers = lines_of(CSV, [text.encode()])
    cut = cut_fields(texts, ["a", "b"], CSV)
    assert cut.columns[1] == ['a "b" c', "two\nlines", None, "", "plain", "xyz"]
    assert numbers == [1, 3, 4, 5, 6, 7], "a quoted break counts"


def test_fields_of_text() -> None:
    line = "\\x41\\101\\b\\\\\t\\N\tN\\N\ta\\\tb"
    cut = cut_fields([line], ["a", "b", "c", "d"], TEXT)
    assert [column[0] for column in cut.columns] == ["AA\b\\", None, "NN", "a\tb"]


@pytest.mark.parametrize(
    ("form", "lines", "message"),
    [
        (TEXT, ["1\t2", "1"], 'missing data for column "b"'),
        (TEXT, ["1\t2", "1\t2\t3"], "extra data after last expected column"),
        (TEXT, ["1\t2", "1\ta\rb"], "literal carriage return found in data"),
        (CSV, ["1,2", '1,"2'], "unterminated CSV quoted field"),
    ],
)
def test_rows_before_a_bad_one_are_there(form: CopyFormat, lines: list[str], message: str) -> None:
    cut = cut_fields(lines, ["a", "b"], form)
    assert cut.rows == 1
    assert isinstance(cut.error, BadCopyFileFormat)
    assert cut.error.message == message


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(CharacterNotInRepertoire, match="0xff") as caught:
        lines_of(TEXT, [b"a\nb\n", b"\xff\n"])
    assert caught.value.context == "line 3"
