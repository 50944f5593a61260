"""The launcher's end of the socket to the agent: JSON objects, one per line, never blocking."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

READ_SIZE = 1 << 16  # bytes


class AgentLink:
    """Messages to and from the agent. After ``closed`` is set, sends go nowhere.

    Works on the bare descriptor: importing ``socket`` would double the launcher's start time.
    """

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._unread = bytearray()
        self._unsent = bytearray()
        self.closed = False

    @property
    def wants_to_write(self) -> bool:
        """Whether the agent reads more slowly than we send."""
        return bool(self._unsent) and not self.closed

    def send(self, message: Mapping[str, object]) -> None:
        """Queue one message; ``flush`` sends it."""
        self.forward(json.dumps(message).encode() + b"\n")

    def forward(self, line: bytes) -> None:
        """Queue one message that is written already, with its line's end."""
        if not self.closed:
            self._unsent += line

    def flush(self) -> None:
        """Send as much as the agent takes now."""
        while self.wants_to_write:
            try:
                sent = os.write(self.fd, self._unsent)
            except BlockingIOError:
                return
            except OSError:
                self.closed = True
                return
            del self._unsent[:sent]

    def receive(self) -> list[bytes]:
        """Return the lines that are complete, without their ends; sets ``closed`` at the agent's
        end.
        """
        while not self.closed:
            try:
                chunk = os.read(self.fd, READ_SIZE)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            if not chunk:
                self.closed = True
            self._unread += chunk
            if len(chunk) < READ_SIZE:
                break  # the end, or all there was
        *lines, rest = bytes(self._unread).split(b"\n")
        self._unread = bytearray(rest)
        return lines
