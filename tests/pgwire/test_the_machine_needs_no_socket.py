"""The state machine, driven by hand: which requests a message leads to, and in which order."""

from evertide.adapter.client import CommandResponse, EmptyResponse
from evertide.pgwire.machine import Machine
from evertide.pgwire.messages import (
    Bind,
    CancelRequest,
    Execute,
    FrontendMessage,
    Parse,
    Query,
    StartupMessage,
    Sync,
    Terminate,
)
from evertide.pgwire.requests import (
    BackendKey,
    CancelBackend,
    Disconnect,
    EndImplicit,
    OpenSession,
    Outcome,
    PrepareStatement,
    Request,
    RunStatement,
    Send,
    SessionOpened,
)
from evertide.pgwire.startup import Gate
from evertide.vocab.errors import SerializationFailure
from tests.pgwire.scripted import Line, ScriptedSession

SCRIPT = {"A": Line(CommandResponse("A")), "B": Line(CommandResponse("B"))}


def drive(
    machine: Machine, message: FrontendMessage, outcomes: dict[type[Request], Outcome | Exception]
) -> list[Request]:
    """Every request of one message; each is answered with the outcome for its kind."""
    requests: list[Request] = []
    steps = machine.handle(message)
    try:
        request = next(steps)
        while True:
            requests.append(request)
            outcome = outcomes.get(type(request))
            if isinstance(outcome, Exception):
                request = steps.throw(outcome)
            else:
                request = steps.send(outcome)
    except StopIteration:
        return requests


def started() -> tuple[Machine, ScriptedSession]:
    machine = Machine(BackendKey(7, 9), Gate())
    session = ScriptedSession(SCRIPT, {}, internal=False)
    requests = drive(
        machine, StartupMessage(3, 0, {"user": "u"}), {OpenSession: SessionOpened(session)}
    )
    assert requests[0] == OpenSession({"user": "u"})
    assert isinstance(requests[1], Send)
    assert requests[1].payload.endswith(b"Z\0\0\0\x05I")
    return machine, session


def test_statements_run_in_order_then_the_transaction_ends_then_the_answer_goes_out() -> None:
    machine, _ = started()
    requests = drive(machine, Query("A; B"), {RunStatement: EmptyResponse()})
    assert [type(request) for request in requests] == [
        RunStatement, RunStatement, EndImplicit, Send,
    ]  # fmt: skip


def test_an_extended_statement_is_one_write_at_sync() -> None:
    machine, session = started()
    outcomes: dict[type[Request], Outcome | Exception] = {
        PrepareStatement: session.split("A")[0],
        RunStatement: CommandResponse("A"),
    }
    messages: list[FrontendMessage] = [
        Parse("", "A", ()),
        Bind("", "", (), (), ()),
        Execute("", 0),
        Sync(),
    ]
    requests = [request for said in messages for request in drive(machine, said, outcomes)]
    assert [type(request) for request in requests] == [
        PrepareStatement, RunStatement, EndImplicit, Send,
    ]  # fmt: skip


def test_a_failed_statement_fails_the_transaction() -> None:
    machine, _ = started()
    requests = drive(machine, Query("A; B"), {RunStatement: SerializationFailure("again")})
    assert requests[1] == EndImplicit(failed=True)
    assert isinstance(requests[2], Send)
    assert b"C40001\0" in requests[2].payload


def test_cancel_and_terminate_end_the_connection() -> None:
    machine = Machine(BackendKey(7, 9), Gate())
    requests = drive(machine, CancelRequest(1, 2), {})
    assert requests == [CancelBackend(BackendKey(1, 2)), Disconnect(with_reason=False)]
    machine, _ = started()
    assert drive(machine, Terminate(), {}) == [Disconnect(with_reason=False)]
