"""The network may cut a stream anywhere; the messages are the same."""

import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from evertide.pgwire.codec import Decoder
from evertide.pgwire.messages import (
    Bind,
    BrokenStream,
    Close,
    Describe,
    Execute,
    Flush,
    FrontendMessage,
    Parse,
    Query,
    StartupMessage,
    Sync,
    Target,
    Terminate,
)
from tests.pgwire.raw import (
    FLUSH,
    SYNC,
    TERMINATE,
    bind,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    startup,
)

SAID = [
    startup(user="u", database="d"),
    query("SELECT 'ü'"),
    parse("SELECT $1", "s"),
    bind("p", "s"),
    message(
        b"B",
        b"\0s\0" + struct.pack("!hhhhii", 2, 0, 1, 2, -1, 3) + b"a\0c" + struct.pack("!hh", 1, 1),
    ),
    describe(b"S", "s"),
    execute("p", 7),
    close(b"P", "p"),
    FLUSH,
    SYNC,
    TERMINATE,
]
MEANT: list[FrontendMessage] = [
    StartupMessage(3, 0, {"user": "u", "database": "d"}),
    Query("SELECT 'ü'"),
    Parse("s", "SELECT $1", ()),
    Bind("p", "s", (), (), ()),
    Bind("", "s", (0, 1), (None, b"a\0c"), (1,)),
    Describe(Target.STATEMENT, "s"),
    Execute("p", 7),
    Close(Target.PORTAL, "p"),
    Flush(),
    Sync(),
    Terminate(),
]
STREAM = b"".join(SAID)


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_messages_do_not_depend_on_cuts(cuts: list[int]) -> None:
    decoder = Decoder()
    decoder.let_in()
    edges = sorted({0, len(STREAM), *cuts})
    got: list[FrontendMessage] = []
    for start, end in itertools.pairwise(edges):
        got += decoder.feed(STREAM[start:end])
    assert got == MEANT


@given(noise=st.binary(max_size=200), cut=st.integers(0, 200))
def test_noise_never_raises(noise: bytes, cut: int) -> None:
    for opening in (b"", startup(user="u")):
        decoder = Decoder()
        messages = decoder.feed(opening + noise[:cut]) + decoder.feed(noise[cut:])
        broken = [isinstance(got, BrokenStream) for got in messages]
        assert not any(broken[:-1]), "nothing follows a broken stream"


@given(tag=st.sampled_from(b"QPBDEC"), body=st.binary(max_size=60))
def test_noise_inside_a_message_leaves_the_next_one_readable(tag: int, body: bytes) -> None:
    decoder = Decoder()
    decoder.feed(startup(user="u"))
    messages = decoder.feed(message(bytes([tag]), body) + SYNC)
    assert len(messages) == 2
    assert messages[1] == Sync()


def test_long_messages_are_only_for_those_who_have_a_session() -> None:
    decoder = Decoder(max_message_bytes=1_000_000)
    decoder.feed(startup(user="u"))
    header = b"Q" + struct.pack("!i", 500_000)
    early = decoder.feed(header)
    assert isinstance(early[0], BrokenStream)
    decoder = Decoder(max_message_bytes=1_000_000)
    decoder.feed(startup(user="u"))
    decoder.let_in()
    assert decoder.feed(header) == []
    assert decoder.feed(b"x" * (500_000 - 5) + b"\0") == [Query("x" * (500_000 - 5))]
