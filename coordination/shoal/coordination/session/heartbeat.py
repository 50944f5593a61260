"""Prove a session from a thread, so that a busy event loop costs no session.

The thread sends a ``sync`` every sixth of the timeout, and the connection thread notes when the
one was sent that it has the answer to. Neither waits for the event loop.

A server answers a ``sync`` on any connection that stands. A session that ends while its client
reconnects can leave a connection behind. So on each new connection something has to be answered
first that is done for a session alone: a write, or a transaction that checks and changes nothing.
 A loop that stands
still must not own anything for ever: once it has not turned for as long as the session
timeout, nothing is proven, and the connection is held still until the loop turns. So the
server ends the session as it does that of a process that is gone, and others take over.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from shoal.coordination.session import wire
from shoal.coordination.session.boottime import boottime
from shoal.coordination.session.client import Client

log = structlog.get_logger()

# Fractions of the negotiated session timeout.
BEAT = 1 / 6  # pause between heartbeats
# An unanswered heartbeat of this age breaks the connection: half a timeout after the last proof at
# most, so another server can prove the session before that ends at 0.7.
SILENCE = 1 / 3
LATE = 0.3  # a loop that turns so late was blocked
STANDSTILL = 1.0  # a loop that has not turned for so long counts as dead

NEVER = float("-inf")


class SessionHeartbeat:
    """The heartbeat of one client.

    ``post`` has a function called on the event loop, in order. ``proof`` is written by the
    connection thread and read by the loop: whose session was proven, and when (``boottime``) the
    request was sent that proves it.
    """

    def __init__(
        self,
        client: Client,
        root: str,
        name: str,
        post: Callable[..., None],
        on_beat: Callable[[], None],
    ) -> None:
        """``root``: the path to sync; ``on_beat``: called on the loop after each answer."""
        self._client, self._root, self._name = client, root, name
        self._post, self._on_beat = post, on_beat
        self.proof: tuple[int, float] = (0, NEVER)
        self._session = 0  # that has a connection; written by the connection thread
        self._is_confirmed = False  # on this connection, the leader has done something for it
        self._asked: float | None = None  # when the heartbeat was sent that has no answer yet
        self._turned_at = time.monotonic()  # of the loop
        self._turn_asked = False  # the loop has not turned since
        self._turned = threading.Event()  # releases the connection that is held still
        self._is_held = False
        self._wake = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name=f"zk heartbeat {name}", daemon=True)

    def start(self) -> None:
        """Begin. Called on the event loop."""
        self._turned_at = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """End; the last proof stands. Any thread."""
        self._over = True
        self._turned.set()
        self._wake.set()

    def connected(self, session_id: int) -> None:
        """Beat at once: a session has a connection again; 0: it has none. Connection thread."""
        self._session = session_id
        self._is_confirmed = False
        self._asked = None
        if session_id:
            self._wake.set()

    def prove(self, session_id: int, sent: float, *, confirms: bool) -> None:
        """A request of this session, sent at ``sent``, was answered. Connection thread.

        ``confirms``: the leader does such a request only if it has the session.
        """
        # Sent after its session had ended, it would have been answered in the next one.
        if self._client._session_id != session_id:
            return
        self._is_confirmed = self._is_confirmed or confirms
        if self._is_confirmed and (session_id != self.proof[0] or sent > self.proof[1]):
            self.proof = (session_id, sent)

    # -- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._over:
            try:
                self._beat()
            except Exception:  # of kazoo, while it is being closed
                log.warning("heartbeat failed", session=self._name, exc_info=True)
            self._wake.wait(self._pause_s())
            self._wake.clear()

    def _pause_s(self) -> float:
        timeout_s, asked = self._client.negotiated_timeout_s, self._asked
        if asked is None:
            return BEAT * timeout_s
        return max(0.01, min(BEAT * timeout_s, asked + SILENCE * timeout_s - time.monotonic()))

    def _beat(self) -> None:
        now, timeout_s = time.monotonic(), self._client.negotiated_timeout_s
        if not self._turn_asked:
            self._turn_asked = True
            self._post(self._loop_turned, now)
        session, asked = self._session, self._asked
        if not session:
            return
        if now - self._turned_at > STANDSTILL * timeout_s:
            self._hold(session)
        elif asked is None:
            self._asked = now
            confirms = not self._is_confirmed
            done = partial(self._answered, session, confirms, now, boottime())
            beat = wire.multi([wire.check(self._root, -1)]) if confirms else wire.sync(self._root)
            self._client.submit(beat, beat.serialize(), session, done)
        elif now - asked > SILENCE * timeout_s:
            log.warning("no answer to the heartbeat", session=self._name)
            self._asked = None
            self._client.drop_connection()

    def _answered(
        self,
        session: int,
        confirms: bool,
        asked: float,
        sent: float,
        answer: Any,
        error: Exception | None,
    ) -> None:
        if self._asked == asked:
            self._asked = None
        if wire.says_expired(answer, error):
            self._client.doubt(session)
        elif error is None:
            self.prove(session, sent, confirms=confirms)
            self._post(self._on_beat)

    # -- the loop ----------------------------------------------------------------------------

    def _loop_turned(self, asked: float) -> None:
        """Called on the event loop: it turns."""
        self._turned_at = time.monotonic()
        self._turn_asked = False
        self._turned.set()
        late_s = self._turned_at - asked
        if late_s > LATE * self._client.negotiated_timeout_s:
            log.warning("event loop was blocked", session=self._name, seconds=round(late_s, 3))

    def _hold(self, session: int) -> None:
        """Let the connection stand still until the loop turns: the server gets no pings then."""
        if self._is_held:
            return
        log.error("event loop stands still; its session is left to end", session=self._name)
        self._is_held = True
        self._turned.clear()
        sync = wire.sync(self._root)
        self._client.submit(sync, sync.serialize(), session, self._stand_still)

    def _stand_still(self, _: Any, error: Exception | None) -> None:
        """Called by the connection thread; at once, and by others, if there is an error."""
        if error is None and not self._over:
            self._turned.wait()
        self._is_held = False
