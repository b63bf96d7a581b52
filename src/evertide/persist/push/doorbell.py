"""Changes of shards told from process to process, by whichever thread made them.

The thread that has just committed tells the others itself: they begin while its own event loop has
yet to wake up. Every process has a socket of its own in one directory, and a message is a single
datagram, so nobody stands in between and threads need no lock. Marks beside the sockets say who is
to be told (attention.py). A receiver that does not keep up is told in another way (hub.py); one
that is gone leaves nothing to wait for.
"""

import asyncio
import os
import socket
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import msgspec

from evertide.persist.push.attention import Attention, attentive, clear_marks
from evertide.persist.push.notify import MOST_NAMED, OnChange
from evertide.vocab.ids import ShardId

# A datagram beyond this is refused by some systems: so many shards are not named one by one.
_LARGEST_BYTES: Final = 32 * 1024
_MANY: Final = 64

_decoder = msgspec.msgpack.Decoder(list[str] | None)


class Doorbell:
    """The socket of one process, and those of the others in its directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # Short: such an address may have about a hundred bytes in all.
        self._name = f"{os.getpid():x}{os.urandom(2).hex()}"
        # What this process is to be told of.
        self.attention = Attention(directory, self._name)
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, on_change: OnChange) -> None:
        """Hear others from now on; called back on this event loop."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        listening.bind(str(self._directory / self._name))
        self._socket, self._loop = listening, asyncio.get_running_loop()
        self._loop.add_reader(listening.fileno(), self._receive, listening, on_change)
        self.attention.show()

    def close(self) -> None:
        """Neither hear nor tell any more."""
        self.attention.hide()
        listening, self._socket = self._socket, None
        if listening is not None and self._loop is not None:
            self._loop.remove_reader(listening.fileno())
            listening.close()
            (self._directory / self._name).unlink(missing_ok=True)

    def ring(self, shard_ids: Collection[ShardId]) -> bool:
        """Tell those who want it, from any thread. False: some must be told in another way."""
        sender = self._socket
        if sender is None:
            return False
        told = True
        try:
            few = shard_ids if len(shard_ids) <= MOST_NAMED else None
            names = attentive(os.listdir(self._directory), few) - {self._name}
            message = _message(few) if names else b""
            for name in names:
                told &= self._send(sender, message, f"{self._directory}/{name}")
        except OSError:
            return False  # the directory or the socket went: this process is ending
        return told

    def _send(self, sender: socket.socket, message: bytes, address: str) -> bool:
        try:
            sender.sendto(message, address)
        except (ConnectionRefusedError, FileNotFoundError):
            # Nobody is there any more: it was killed, or has just ended.
            with suppress(OSError):
                os.unlink(address)
            clear_marks(self._directory, os.path.basename(address))
        except BlockingIOError:
            return False
        return True

    def _receive(self, listening: socket.socket, on_change: OnChange) -> None:
        """What has come, at most so much at a time: the loop has others to serve."""
        heard: dict[ShardId, None] = {}
        for _ in range(_MANY):
            try:
                message = listening.recv(2 * _LARGEST_BYTES)
                shard_ids = _decoder.decode(message)
            except (BlockingIOError, msgspec.DecodeError):
                break
            if shard_ids is None:
                on_change(None)
                return
            heard.update(dict.fromkeys(cast("list[ShardId]", shard_ids)))
        if heard:
            on_change(list(heard))


def _message(shard_ids: Collection[ShardId] | None) -> bytes:
    encoded = msgspec.msgpack.encode(None if shard_ids is None else list(shard_ids))
    return encoded if len(encoded) <= _LARGEST_BYTES else msgspec.msgpack.encode(None)
