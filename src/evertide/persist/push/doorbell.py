"""Changes of shards told from process to process, by whichever thread made them.

The thread that has just committed tells the others itself: they begin while its own event loop has
yet to wake up. Every process has a socket of its own in one directory, and a message is a single
datagram, so nobody stands in between and threads need no lock. Marks beside the sockets say who is
to be told (attention.py). A receiver that does not keep up is told in another way (hub.py), and
holds up no other: what it has not read fills the sender's buffer, so there is one for each. One
that is gone leaves nothing to wait for.
"""

import asyncio
import os
import socket
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from evertide.persist.news import UNREADABLE, News, OnNews, decode_message, encode_message
from evertide.persist.push.attention import Attention, attentive, clear_marks
from evertide.persist.push.notify import MOST_NAMED, OnChange
from evertide.vocab.ids import ShardId

# A datagram beyond this is refused by some systems: so much is read instead of being told, and so
# many shards are not named one by one.
_LARGEST_BYTES: Final = 64 * 1024
_MANY: Final = 64


class Doorbell:
    """The socket of one process, and those of the others in its directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # Short: such an address may have about a hundred bytes in all.
        self._name = f"{os.getpid():x}{os.urandom(2).hex()}"
        # What this process is to be told of.
        self.attention = Attention(directory, self._name)
        self._socket: socket.socket | None = None
        # By receiver.
        self._senders: dict[str, socket.socket] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._received = bytearray(2 * _LARGEST_BYTES)

    def start(self, on_change: OnChange, on_news: OnNews) -> None:
        """Hear others from now on; called back on this event loop, with the news first."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        listening.bind(str(self._directory / self._name))
        self._socket, self._loop = listening, asyncio.get_running_loop()
        self._loop.add_reader(listening.fileno(), self._receive, listening, on_change, on_news)
        self.attention.show()

    def close(self) -> None:
        """Neither hear nor tell any more."""
        self.attention.hide()
        listening, self._socket = self._socket, None
        if listening is not None and self._loop is not None:
            self._loop.remove_reader(listening.fileno())
            listening.close()
            (self._directory / self._name).unlink(missing_ok=True)
        for name in list(self._senders):
            self._forget(name)

    def ring(self, shard_ids: Collection[ShardId], news: Sequence[News] = ()) -> bool:
        """Tell those who want it, from any thread. False: some must be told in another way.

        `news`: what one commit left of these shards, as far as there is something to tell.
        """
        if self._socket is None:
            return False
        told = True
        try:
            few = shard_ids if len(shard_ids) <= MOST_NAMED else None
            names = attentive(os.listdir(self._directory), few) - {self._name}
            message = encode_message(few, news, _LARGEST_BYTES) if names else b""
            for name in names:
                told &= self._send(name, message)
        except OSError:
            return False  # the directory or the socket went: this process is ending
        return told

    def _send(self, name: str, message: bytes) -> bool:
        try:
            (self._senders.get(name) or self._connected(name)).send(message)
        except (ConnectionRefusedError, FileNotFoundError):
            # Nobody is there any more: it was killed, or has just ended.
            self._forget(name)
            with suppress(OSError):
                os.unlink(self._directory / name)
            clear_marks(self._directory, name)
        except BlockingIOError:
            return False
        return True

    def _connected(self, name: str) -> socket.socket:
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            sender.connect(str(self._directory / name))
        except OSError:
            sender.close()
            raise
        kept = self._senders.setdefault(name, sender)
        if kept is not sender:
            sender.close()  # another thread was quicker
        return kept

    def _forget(self, name: str) -> None:
        sender = self._senders.pop(name, None)
        if sender is not None:
            sender.close()

    def _receive(self, listening: socket.socket, on_change: OnChange, on_news: OnNews) -> None:
        """What has come, at most so much at a time: the loop has others to serve."""
        heard: dict[ShardId, None] = {}
        received = memoryview(self._received)
        for _ in range(_MANY):
            try:
                size = listening.recv_into(received)
            except BlockingIOError:
                break
            try:
                shard_ids, news = decode_message(received[:size])
            except UNREADABLE:
                shard_ids, news = None, []  # it says something, to those who understand it
            if shard_ids is None:
                on_change(None)
                return
            if news:
                on_news(news)  # now: the next message is received in their place
            heard.update(dict.fromkeys(shard_ids))
        if heard:
            on_change(list(heard))
