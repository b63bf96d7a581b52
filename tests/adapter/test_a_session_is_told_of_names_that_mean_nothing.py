"""What a session has by name and cannot find is told, at its start and when it is set."""

import pytest

from evertide.adapter.missing_names import note_missing, note_missing_value
from evertide.adapter.session import Login, Session
from evertide.adapter.variables import Variables
from evertide.catalog.durable.bootstrap import DEFAULT_ROLE_ID
from evertide.catalog.ops import DropClusterOp
from tests.catalog.samples import DEFAULT, after, new_snapshot


def session_with(**variables: str) -> Session:
    return Session("joe", Variables(variables), Login(DEFAULT_ROLE_ID, True, False))


def told(session: Session) -> list[tuple[str, str]]:
    return [(notice.sqlstate, notice.message) for notice in session.notices]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, []),
        ({"cluster": "nope"}, [("MZ005", 'default cluster "nope" does not exist')]),
        ({"database": "nope"}, [("MZ004", 'default database "nope" does not exist')]),
        ({"search_path": "nope"}, []),
        ({"cluster": "nope", "current_object_missing_warnings": "off"}, []),
    ],
)
def test_at_its_start(variables: dict[str, str], expected: list[tuple[str, str]]) -> None:
    session = session_with(**variables)
    note_missing(session, new_snapshot())
    assert told(session) == expected


def test_that_the_first_cluster_was_dropped() -> None:
    session = session_with()
    note_missing(session, after(new_snapshot(), DropClusterOp(DEFAULT)))
    assert told(session) == [("MZ005", 'default cluster "default" does not exist')]


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("cluster", "default", []),
        ("cluster", "nope", [("MZ007", 'cluster "nope" does not exist')]),
        ("database", "nope", [("MZ006", 'database "nope" does not exist')]),
        ("search_path", "nope, public", []),
        ("search_path", "mz_catalog", []),
        ("search_path", "", []),
        ("search_path", "a, b", [("MZ008", "no schema of the search path exists: a, b")]),
        ("application_name", "nope", []),
    ],
)
@pytest.mark.parametrize("silent", [False, True])
def test_when_it_is_set(
    variable: str, value: str, expected: list[tuple[str, str]], *, silent: bool
) -> None:
    wish = {"current_object_missing_warnings": "off"} if silent else {}
    session = session_with(**{variable: value}, **wish)
    note_missing_value(variable, session, new_snapshot())
    assert told(session) == ([] if silent else expected)
