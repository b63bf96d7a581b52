"""Random statements about replacements and what was dropped, and comments."""

from collections.abc import Callable
from random import Random

from evertide.sql.syntax import replacement as r
from evertide.sql.syntax.comment import CommentStatement
from evertide.sql.syntax.definition import ObjectKind
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.statement import Statement
from evertide.sql.syntax.undrop import UndropStatement
from tests.sql.parse_trees import identifier, name

_UNDROPPED = (
    ObjectKind.TABLE,
    ObjectKind.VIEW,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.INDEX,
)
_COMMENTED = (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX, ObjectKind.SCHEMA)


def replacement_statement(rng: Random) -> Statement:
    makers: list[Callable[[], Statement]] = [
        lambda: r.ApplyReplacementStatement(
            name(rng), name(rng), _flag(rng), _flag(rng), _flag(rng)
        ),
        lambda: r.RestoreVersionStatement(name(rng), rng.randint(1, 99), _flag(rng)),
        lambda: r.ExplainReplacementStatement(name(rng)),
        lambda: r.ShowReplacementChangesStatement(name(rng), rng.choice([None, 0, 7])),
        lambda: CommentStatement(rng.choice(_COMMENTED), name(rng), _text(rng)),
        lambda: CommentStatement(None, Name((identifier(rng), identifier(rng))), _text(rng)),
        lambda: _undrop(rng),
    ]
    return rng.choice(makers)()


def _undrop(rng: Random) -> UndropStatement:
    kind = rng.choice(_UNDROPPED)
    new_name = rng.choice([None, identifier(rng)])
    if rng.random() < 0.3:
        optional = rng.choice([None, kind])
        return UndropStatement(optional, None, "u7", new_name, _flag(rng), _flag(rng))
    return UndropStatement(kind, name(rng), None, new_name, _flag(rng), _flag(rng))


def _flag(rng: Random) -> bool:
    return rng.random() < 0.5


def _text(rng: Random) -> str | None:
    return rng.choice([None, "", "it's", 'a "word"', "\\n"])
