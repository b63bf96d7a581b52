"""Who a client is, before anything is done for it: the messages that prove a password."""

from evertide.adapter.client import Credentials
from evertide.pgwire import replies, scram
from evertide.pgwire.codec import decode_text, sasl_initial_response
from evertide.pgwire.messages import BrokenStream, InvalidMessage, PasswordMessage, Terminate
from evertide.pgwire.requests import (
    Asking,
    Disconnect,
    NoteAttempt,
    Send,
    await_turn,
    find_credentials,
    next_message,
)
from evertide.vocab.errors import InvalidPassword, ProtocolViolation


def authenticate(user: str) -> Asking[tuple[Credentials, bytes]]:
    """Ask for the password's proof; gives what was proved and the last word, or raises.

    The client may send ahead what it likes: nothing but the two parts of its proof is taken.
    """
    credentials = yield from find_credentials(user)
    yield Send(replies.AUTHENTICATION_SASL)
    mechanism, response = sasl_initial_response((yield from _password_message()))
    begun = scram.begin(user, credentials, mechanism, decode_text(response or b""))
    yield Send(replies.authentication_sasl_continue(begun.challenge))
    proof = decode_text((yield from _password_message()))
    yield from await_turn(user)
    try:
        outcome = scram.finish(begun, proof)
    except InvalidPassword:
        yield NoteAttempt(user, succeeded=False)
        raise
    yield NoteAttempt(user, succeeded=True)
    return credentials, replies.authentication_sasl_final(outcome)


def _password_message() -> Asking[bytes]:
    message = yield from next_message()
    match message:
        case PasswordMessage(payload):
            return payload
        case InvalidMessage(error=error) | BrokenStream(error=error):
            raise error
        case Terminate():
            yield Disconnect(with_reason=False)
            raise ProtocolViolation("the client has gone")
        case _:
            name = type(message).__name__
            raise ProtocolViolation(f"expected SASL response, got message {name}")
