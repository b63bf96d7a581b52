"""Bytes that leave a process before its event loop gets to them."""

import asyncio
import os
from typing import Final

# What is longer is left to the transport: copying it would hold up the loop.
_MOST_BYTES: Final = 64 * 1024


def write_now(transport: asyncio.WriteTransport, message: bytes) -> None:
    """Write without waiting for the loop's turn, in which all else that is ready comes first.

    Whoever sends has often more to do, and the other side could begin meanwhile. To a connection
    that is closing nothing is written: whoever waits for an answer learns of its end, but perhaps
    later than this is called, and some loops would raise what looks like a bug.
    """
    if transport.is_closing():
        return
    sent = 0
    if not transport.get_write_buffer_size() and len(message) <= _MOST_BYTES:
        try:
            sent = os.write(transport.get_extra_info("socket").fileno(), message)
        except OSError:
            pass  # it is full, or gone, which the transport will find out
    if sent < len(message):
        transport.write(message[sent:])
