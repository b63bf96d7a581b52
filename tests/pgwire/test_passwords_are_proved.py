"""Where passwords are demanded, whoever does not prove one gets nothing, and learns nothing."""

import asyncio
import gc
import hashlib
import os
import struct
import subprocess
import warnings
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest

from evertide.adapter.client import Credentials, RowsResponse
from evertide.pgwire import scram
from evertide.pgwire.attempts import LONGEST_WAIT_S, Attempts
from evertide.vocab.errors import InvalidPassword, ProtocolViolation, SqlError
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.scram import (
    MECHANISM,
    Verifier,
    from_base64,
    keyed,
    make_verifier,
    read_verifier,
    to_base64,
)
from evertide.vocab.sql_type import INT4
from tests.pgwire.raw import Listening, RawClient, message, query, startup
from tests.pgwire.scripted import RunningServer, running_server
from tests.support.certificate import server_context, write_certificate
from tests.support.postgres import PSQL

# Passwords that are typed in more than one way, or that no normal form takes.
PASSWORDS = (
    "open sesame", "w\u00f6rd", "I\u00adX", "\u2168", "a\u00a0b", "\u06271", "\u0007", "'\\$",
)  # fmt: skip


@pytest.fixture(params=["plain", "tls"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    certificate = write_certificate(tmp_path_factory.mktemp("tls"))
    tls = server_context(certificate) if request.param == "tls" else None
    with running_server(tls=tls, passwords=True) as server:
        server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
        server.factory.verifiers["tester"] = make_verifier("open sesame")
        yield server


def sslmode(server: RunningServer) -> str:
    return "disable" if server.server._tls is None else "require"


def test_psycopg_gets_in_by_its_password(guarded: RunningServer) -> None:
    mode = sslmode(guarded)
    with psycopg.connect(guarded.dsn, password="open sesame", sslmode=mode) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.pgconn.ssl_in_use == (mode == "require")
    for wrong in ("open Sesame", "x"):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(guarded.dsn, password=wrong, sslmode=mode)


def test_asyncpg_gets_in_by_its_password(guarded: RunningServer) -> None:
    asyncio.run(_asyncpg_gets_in(guarded))
    with warnings.catch_warnings():
        # It leaves a refused connection to its event loop, which may end before that is closed:
        # whichever test comes when it is collected would be told.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def _asyncpg_gets_in(guarded: RunningServer) -> None:
    settings = {"host": guarded.host, "port": guarded.port, "user": "tester"}
    ssl = "require" if sslmode(guarded) == "require" else False
    connection = await asyncpg.connect(**settings, password="open sesame", ssl=ssl)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(**settings, password="wrong", ssl=ssl)


def test_psql_gets_in_by_its_password() -> None:
    """The wheel's psql has no TLS."""
    with running_server(passwords=True) as server:
        server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
        server.factory.verifiers["tester"] = make_verifier("open sesame")
        for password, answer in (("open sesame", "1\n"), ("wrong", "")):
            told = subprocess.run(
                [str(PSQL), "-X", "-A", "-t", "-w", server.dsn, "-c", "SELECT 1"],
                env={**os.environ, "PGPASSWORD": password},
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            assert told.stdout == answer
            assert ("password authentication failed" in told.stderr) == (not answer)


@pytest.mark.parametrize("password", PASSWORDS)
def test_verifiers_are_those_that_postgresql_makes(password: str, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        literal = psycopg.sql.Literal(password)
        connection.execute(psycopg.sql.SQL("CREATE ROLE verified PASSWORD {}").format(literal))
        asked = "SELECT rolpassword FROM pg_authid WHERE rolname = 'verified'"
        row = connection.execute(asked).fetchone()
        connection.rollback()
    assert row is not None
    theirs = read_verifier(row[0])
    assert theirs is not None
    assert make_verifier(password, salt=theirs.salt).text == row[0] == theirs.text
    assert to_base64(theirs.stored_key) not in repr(theirs)


def test_the_exchange_is_that_of_rfc_7677() -> None:
    salt = from_base64("W22ZaJ0SNY7soEsUEjb6gQ==")
    assert salt is not None
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    challenge = f"r={nonce},s={to_base64(salt)},i=4096"
    begun = scram.Begun(
        "user",
        Credentials(make_verifier("pencil", salt=salt), True),
        "n,,",
        nonce,
        f"n=user,r=rOprNGfwEbeRWgbNEkqO,{challenge}",
        challenge,
    )
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    answer = scram.finish(begun, f"c=biws,r={nonce},p={proof}")
    assert answer == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class Prover:
    """A client's half, which a test may spoil."""

    def __init__(self, server: Listening, user: str) -> None:
        self.client = RawClient(server)
        self.client.send(startup(user=user))
        self.offered = self.reply(10)
        self.first = "n=,r=clientnonce"

    def __enter__(self) -> "Prover":
        self.client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__(None, None, None)

    def reply(self, code: int) -> bytes:
        reply = self.client.reply()
        assert reply.tag == b"R", reply.fields
        assert struct.unpack("!i", reply.body[:4]) == (code,)
        return reply.body[4:]

    def begin(self, *, header: str = "n,,", mechanism: str = MECHANISM) -> None:
        said = (header + self.first).encode()
        body = mechanism.encode() + b"\0" + struct.pack("!i", len(said)) + said
        self.client.send(message(b"p", body))

    def challenge(self) -> dict[str, str]:
        self.challenged = self.reply(11).decode()
        return dict(part.split("=", 1) for part in self.challenged.split(","))

    def prove(self, verifier_keys: tuple[bytes, bytes], nonce: str, binding: str = "biws") -> None:
        """With the client key and the stored key of a password."""
        client_key, stored_key = verifier_keys
        last = f"c={binding},r={nonce}"
        signature = keyed(stored_key, f"{self.first},{self.challenged},{last}".encode())
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.client.send(message(b"p", f"{last},p={to_base64(proof)}".encode()))


def keys_of(verifier: Verifier) -> tuple[bytes, bytes]:
    """What a thief of the verifier would try as the client key."""
    return verifier.stored_key, verifier.stored_key


@pytest.fixture
def plain() -> Iterator[RunningServer]:
    with running_server(passwords=True) as server:
        server.say("SELECT 1", RowsResponse(relation_desc(("one", INT4)), [(1,)]))
        server.factory.verifiers["tester"] = make_verifier("open sesame")
        yield server


def test_who_stole_the_verifier_does_not_get_in(plain: RunningServer) -> None:
    with Prover(plain, "tester") as prover:
        assert prover.offered == MECHANISM.encode() + b"\0\0"
        prover.begin()
        nonce = prover.challenge()["r"]
        prover.prove(keys_of(plain.factory.verifiers["tester"]), nonce)
        assert prover.client.reply().fields["C"] == "28P01"
    assert plain.factory.sessions == []


def test_users_who_are_not_there_look_like_those_who_are(plain: RunningServer) -> None:
    told = {}
    for user in ("tester", "nobody"):
        with Prover(plain, user) as prover:
            prover.begin()
            challenge = prover.challenge()
            salts = {challenge["s"]}
            prover.prove((b"k" * 32, b"k" * 32), challenge["r"])
            fields = prover.client.reply().fields
            shape = [len(challenge["r"]), len(challenge["s"]), challenge["i"]]
            told[user] = (fields["C"], fields["M"].replace(user, "…"), fields["S"], shape)
        with Prover(plain, user) as prover:
            prover.begin()
            salts.add(prover.challenge()["s"])
        assert len(salts) == 1, "a salt that changed would tell that there is no password"
    assert told["tester"] == told["nobody"]


def test_nothing_runs_before_the_proof(plain: RunningServer) -> None:
    with RawClient(plain) as client:
        client.send(startup(user="tester") + query("SELECT 1"))
        assert client.reply().tag == b"R"
        assert client.reply().fields["C"] == "08P01"
    with RawClient(plain) as client:
        client.send(startup(user="tester") + message(b"p", b"open sesame\0"))
        assert client.reply().tag == b"R"
        assert client.reply().fields["C"] == "08P01"
    assert plain.factory.sessions == []


def test_an_exchange_that_does_not_hold_together_is_refused(plain: RunningServer) -> None:
    bound = to_base64(b"p=tls-unique,,")
    for spoilt, code in (
        ({"header": "p=tls-unique,,"}, "08P01"),
        ({"header": "n,a=root,"}, "0A000"),
        ({"header": "n,,m=what,"}, "0A000"),
        ({"header": "x"}, "08P01"),
        ({"mechanism": "SCRAM-SHA-256-PLUS"}, "08P01"),
        ({"mechanism": "PLAIN"}, "08P01"),
    ):
        with Prover(plain, "tester") as prover:
            prover.begin(**spoilt)
            assert prover.client.reply().fields["C"] == code, spoilt
    with Prover(plain, "tester") as prover:
        prover.begin()
        prover.challenge()
        prover.prove((b"k" * 32, b"k" * 32), "clientnonceandnothingelse")
        assert prover.client.reply().fields["C"] == "08P01"
    with Prover(plain, "tester") as prover:
        prover.begin()
        nonce = prover.challenge()["r"]
        prover.prove((b"k" * 32, b"k" * 32), nonce, bound)
        assert prover.client.reply().fields["C"] == "08P01"
    with Prover(plain, "tester") as prover:
        prover.client.send(message(b"p", b"x" * 20_000))
        assert prover.client.reply().fields["C"] == "08P01"
    assert plain.factory.sessions == []


def test_a_proof_is_worth_nothing_in_another_exchange() -> None:
    verifier = make_verifier("open sesame")
    first = scram.begin("u", Credentials(verifier, True), MECHANISM, "n,,n=,r=abc")
    second = scram.begin("u", Credentials(verifier, True), MECHANISM, "n,,n=,r=abc")
    assert first.nonce != second.nonce
    said = f"c=biws,r={first.nonce}"
    with pytest.raises(ProtocolViolation):
        scram.finish(second, f"{said},p={to_base64(b'k' * 32)}")


def test_a_session_is_told_what_was_proved(plain: RunningServer) -> None:
    psycopg.connect(plain.dsn, password="open sesame").close()
    assert plain.factory.proved == [Credentials(plain.factory.verifiers["tester"], genuine=True)]
    with running_server() as trusting:
        psycopg.connect(trusting.dsn).close()
        assert trusting.factory.proved == [None]


def test_decoys_are_met_by_nothing() -> None:
    """Even by what would meet them, were they anybody's."""
    verifier = make_verifier("open sesame")
    begun = scram.begin("u", Credentials(verifier, False), MECHANISM, "n,,n=,r=abc")
    salted = hashlib.pbkdf2_hmac("sha256", b"open sesame", verifier.salt, 4096)
    client_key = keyed(salted, b"Client Key")
    last = f"c=biws,r={begun.nonce}"
    signature = keyed(verifier.stored_key, f"{begun.said},{last}".encode())
    proof = to_base64(bytes(a ^ b for a, b in zip(client_key, signature, strict=True)))
    with pytest.raises(InvalidPassword):
        scram.finish(begun, f"{last},p={proof}")
    genuine = scram.Begun(
        "u", Credentials(verifier, True), begun.header, begun.nonce, begun.said, begun.challenge
    )
    assert scram.finish(genuine, f"{last},p={proof}").startswith("v=")


def test_tries_become_slow_and_success_makes_them_fast_again() -> None:
    attempts = Attempts()
    now = 0.0
    waited = []
    for _ in range(12):
        wait = attempts.wait_s("here", "u", now)
        assert wait is not None
        waited.append(wait)
        now += wait
        attempts.failed("here", "u", now)
    assert waited[:4] == [0.0] * 4, "a mistyped password costs nothing"
    assert waited[-1] == 1.0
    assert waited == sorted(waited)
    assert attempts.wait_s("here", "other", now) == 0.0
    assert attempts.wait_s("elsewhere", "u", now) == 0.0
    attempts.succeeded("here", "u")
    assert attempts.wait_s("here", "u", now) == 0.0


def test_many_connections_try_no_faster_than_one() -> None:
    attempts = Attempts()
    for _ in range(10):
        attempts.failed("here", "u", 0.0)
    turns = [attempts.wait_s("here", "u", 0.0) for _ in range(20)]
    given = [turn for turn in turns if turn is not None]
    assert given == [float(n) for n in range(1, int(LONGEST_WAIT_S) + 1)]
    assert turns[len(given) :] == [None] * (20 - len(given)), "no line of any length"


def test_tries_are_remembered_within_bounds() -> None:
    attempts = Attempts()
    for number in range(10_000):
        attempts.failed("here", str(number), 0.0)
    assert len(attempts._lines) <= 4_096


def test_who_fails_often_waits_on_the_wire(plain: RunningServer) -> None:
    def once() -> str:
        with Prover(plain, "tester") as prover:
            prover.begin()
            prover.prove((b"k" * 32, b"k" * 32), prover.challenge()["r"])
            return prover.client.reply().fields["C"]

    assert {once() for _ in range(5)} == {"28P01"}
    attempts = plain.server._backends._attempts
    assert attempts._lines["127.0.0.1", "tester"].failures == 5
    with psycopg.connect(plain.dsn, password="open sesame") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not attempts._lines


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
async def test_other_machines_need_passwords_and_tls(host: str) -> None:
    with running_server(passwords=True) as server, pytest.raises(ValueError, match="refusing"):
        await server.server.start(host, 0, server.factory, internal=False)


def test_other_machines_are_heard_within_tls_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    tls = server_context(write_certificate(tmp_path_factory.mktemp("tls")))
    with running_server(tls=tls, passwords=True) as server:
        server.factory.verifiers["tester"] = make_verifier("open sesame")

        async def listen() -> None:
            _, server.port = await server.server.start("0.0.0.0", 0, server.factory, False)
            with pytest.raises(ValueError, match="refusing"):
                await server.server.start("0.0.0.0", 0, server.factory, internal=True)

        server.run(listen())
        with pytest.raises(psycopg.OperationalError, match="must be encrypted"):
            psycopg.connect(server.dsn, password="open sesame")
        with psycopg.connect(server.dsn, password="open sesame", sslmode="require") as connection:
            assert connection.pgconn.ssl_in_use


@pytest.mark.parametrize(
    "text",
    [
        "SCRAM-SHA-256$4095:c2FsdA==$" + "A" * 43 + "=:" + "A" * 43 + "=",
        "SCRAM-SHA-256$4096:c2FsdA==$" + "A" * 43 + "=:" + "A" * 40,
        "SCRAM-SHA-256$4096:!$a:b",
        "SCRAM-SHA-256$********",
        "",
    ],
)
def test_what_is_no_verifier_is_not_taken_for_one(text: str) -> None:
    assert read_verifier(text) is None


def test_errors_of_the_exchange_say_nothing_of_the_proof() -> None:
    begun = scram.begin("u", Credentials(make_verifier("p"), True), MECHANISM, "n,,n=,r=abc")
    with pytest.raises(SqlError) as refused:
        scram.finish(begun, "open sesame")
    assert "sesame" not in f"{refused.value} {refused.value.detail}"
