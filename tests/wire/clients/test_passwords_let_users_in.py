"""Goal: with --auth a user's password lets it in, and nothing that is stored or told gives it away.

Method: a server of its own; a canary as the password in every statement that takes one, looked for
in all files of the data directory, in the log, and in every relation that shows statements, roles
or events.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from evertide.vocab.scram import from_base64, keyed, make_verifier
from tests.pgwire.raw import Place
from tests.pgwire.test_passwords_are_proved import Prover
from tests.support.certificate import write_certificate
from tests.support.server import Server, running_server

CANARY = "canary-Zx81-canary"
PARTS = re.compile(r"SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("guarded") / "data"
    tls = ["--tls-cert", str(certificate), "--tls-key", str(certificate)]
    flags = ["--auth", "scram-sha-256", "--catalog", "shadow", *tls]
    with running_server(data, flags) as server:
        with operator(server) as connection:
            connection.execute(f"ALTER ROLE materialize PASSWORD '{CANARY}'")
            connection.execute(f"CREATE ROLE ada WITH LOGIN PASSWORD '{CANARY}'")
        yield server


@contextmanager
def operator(server: Server) -> Iterator["psycopg.Connection[tuple]"]:
    """By the internal address, which only this machine reaches and which trusts."""
    host, port = server.internal[0].rsplit(":", 1)
    with psycopg.connect(
        host=host, port=int(port), user="mz_system", dbname="materialize", autocommit=True
    ) as connection:
        yield connection


def refusal(server: Server, **options: str) -> str:
    with pytest.raises(psycopg.OperationalError) as refused:
        server.connect(0, **options).close()
    return str(refused.value)


@pytest.mark.parametrize("mode", ["disable", "require"])
def test_the_right_password_lets_in(guarded: Server, mode: str) -> None:
    with guarded.connect(user="ada", password=CANARY, sslmode=mode) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ada",)
        assert connection.pgconn.ssl_in_use == (mode == "require")


def test_all_others_are_told_the_same(guarded: Server) -> None:
    with operator(guarded) as connection:
        connection.execute("CREATE ROLE wordless WITH LOGIN")
    for user in ("ada", "nobody", "wordless", "mz_system"):
        told = refusal(guarded, user=user, password="wrong")
        assert f'password authentication failed for user "{user}"' in told
    assert "no password supplied" in refusal(guarded, user="ada")


def test_a_role_that_may_not_log_in_does_not_by_its_password(guarded: Server) -> None:
    with operator(guarded) as connection:
        connection.execute("CREATE ROLE still WITH NOLOGIN PASSWORD 'x'")
    assert "is not permitted to log in" in refusal(guarded, user="still", password="x")
    assert "password authentication failed" in refusal(guarded, user="still", password="y")


def test_a_password_changes_and_goes(guarded: Server) -> None:
    with operator(guarded) as connection:
        connection.execute("CREATE ROLE bob WITH LOGIN PASSWORD 'first'")
    with guarded.connect(user="bob", password="first") as connection:
        connection.execute("ALTER ROLE bob PASSWORD 'second'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("ALTER ROLE ada PASSWORD 'mine'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("ALTER ROLE bob SUPERUSER PASSWORD 'third'")
    assert "password authentication failed" in refusal(guarded, user="bob", password="first")
    with guarded.connect(user="bob", password="second") as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda told: notices.append(told.message_primary or ""))
        connection.execute("ALTER ROLE bob PASSWORD ''")
    assert notices == ["empty string is not a valid password, clearing password"]
    assert "password authentication failed" in refusal(guarded, user="bob", password="second")
    with operator(guarded) as connection:
        connection.execute("ALTER ROLE bob PASSWORD 'fourth'")
        connection.execute("DROP ROLE bob")
        connection.execute("CREATE ROLE bob WITH LOGIN")
    assert "password authentication failed" in refusal(guarded, user="bob", password="fourth")


@pytest.mark.parametrize("made_again", [False, True])
def test_a_role_that_goes_while_its_password_is_proved_is_not_let_in(
    guarded: Server, made_again: bool
) -> None:
    made = f"CREATE ROLE brief WITH LOGIN PASSWORD '{make_verifier('x').text}'"
    host, port = guarded.sql[0].rsplit(":", 1)
    with operator(guarded) as connection:
        connection.execute("DROP ROLE IF EXISTS brief")
        connection.execute(made)
    with operator(guarded) as connection, Prover(Place(host, int(port)), "brief") as prover:
        prover.begin()
        challenge = prover.challenge()
        connection.execute("DROP ROLE brief")
        if made_again:
            connection.execute(made)
        prover.prove(client_keys("x", challenge), challenge["r"])
        reply = prover.client.reply()
        assert (reply.tag, reply.fields["C"]) == (b"E", "28P01")


def client_keys(password: str, challenge: dict[str, str]) -> tuple[bytes, bytes]:
    salt = from_base64(challenge["s"])
    assert salt is not None
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, int(challenge["i"]))
    client_key = keyed(salted, b"Client Key")
    return client_key, hashlib.sha256(client_key).digest()


def test_a_verifier_made_elsewhere_is_taken(guarded: Server, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as elsewhere:
        elsewhere.execute("CREATE ROLE made PASSWORD 'elsewhere'")
        asked = "SELECT rolpassword FROM pg_authid WHERE rolname = 'made'"
        row = elsewhere.execute(asked).fetchone()
        elsewhere.rollback()
    assert row is not None
    with operator(guarded) as connection:
        connection.execute(f"CREATE ROLE made WITH LOGIN ENCRYPTED PASSWORD '{row[0]}'")
        for bad in ("SCRAM-SHA-256$********", "SCRAM-SHA-256$1:c2FsdA==$a:b", "x" * 1_025):
            with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
                connection.execute(f"ALTER ROLE made PASSWORD '{bad}'")
            assert bad not in str(refused.value)
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="MD5"):
            connection.execute(f"ALTER ROLE made PASSWORD 'md5{'0' * 32}'")
        with pytest.raises(psycopg.errors.SyntaxError, match="conflicting or redundant options"):
            connection.execute("ALTER ROLE made PASSWORD 'a' PASSWORD 'b'")
    with guarded.connect(user="made", password="elsewhere") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_is_kept_is_hidden_as_postgresql_hides_it(guarded: Server) -> None:
    with guarded.connect(user="ada", password=CANARY) as connection:
        asked = "SELECT DISTINCT rolpassword FROM pg_roles"
        assert connection.execute(asked).fetchall() == [("********",)]
        for relation in ("pg_authid", "pg_shadow"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=relation):
                connection.execute(f"SELECT * FROM {relation}")
    with operator(guarded) as connection:
        connection.execute("CREATE ROLE blank WITH LOGIN")
        asked = "SELECT rolname, rolpassword FROM pg_authid WHERE rolname IN ('ada', 'blank')"
        assert dict(connection.execute(asked).fetchall()) == {
            "ada": "SCRAM-SHA-256$********",
            "blank": None,
        }


def test_no_password_is_found_anywhere(guarded: Server) -> None:
    with operator(guarded) as connection:
        connection.execute(f"CREATE ROLE eve WITH LOGIN PASSWORD '{CANARY}'")
        with pytest.raises(psycopg.Error):
            connection.execute(f"CREATE ROLE eve WITH LOGIN PASSWORD '{CANARY}'")
        with pytest.raises(psycopg.Error):
            connection.execute(f"ALTER ROLE nobody PASSWORD '{CANARY}'")
        connection.execute(f"ALTER ROLE eve PASSWORD '{CANARY}'", prepare=True)
        shown = repr(
            [
                connection.execute(f"SELECT * FROM {relation}").fetchall()
                for relation in (
                    "mz_audit_events", "mz_roles", "pg_authid", "pg_shadow", "pg_roles",
                    "pg_user", "pg_settings",
                )
            ]
        )  # fmt: skip
        events = "SELECT details FROM mz_audit_events WHERE object_type = 'role'"
        assert any("password" in str(row) for row in connection.execute(events).fetchall())
    dump = subprocess.run(
        [sys.executable, "-m", "evertide.cli.main", "catalog-debug", "dump",
         "--data", str(guarded.data), "--catalog", "shadow"],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    assert "SCRAM-SHA-256$\u2026" in dump
    for text in (shown, dump, guarded.log_text()):
        assert CANARY not in text
        assert PARTS.search(text) is None
    files = [path for path in guarded.data.rglob("*") if path.is_file()]
    assert any(PARTS.search(path.read_bytes().decode("latin-1")) for path in files)
    assert not any(CANARY.encode() in path.read_bytes() for path in files)


def test_passwords_outlive_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_server(data, ["--auth", "scram-sha-256"]) as server, operator(server) as first:
        first.execute("CREATE ROLE kept WITH LOGIN PASSWORD 'kept'")
    with running_server(data, ["--auth", "scram-sha-256"]) as server:
        with server.connect(user="kept", password="kept") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert "authentication failed" in refusal(server, user="kept", password="lost")
    with running_server(data) as server, server.connect(user="kept") as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("kept",)
