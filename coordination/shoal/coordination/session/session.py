"""One ZooKeeper session for an event loop.

Calls are sent when they are made and return futures, so calls made one after the other travel
together (ZooKeeper answers a session's requests in their order)::

    nodes = await asyncio.gather(*(session.get(path) for path in paths))

Nothing here blocks the loop. All methods belong to the loop that entered the session.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NoReturn, Self, TypeVar

import structlog

from shoal.coordination.errors import (
    BadAddress,
    CannotConnect,
    ConnectionLoss,
    CoordinationError,
    CredentialRefused,
    MalformedRequest,
    Obstacle,
    SessionClosed,
    SessionLost,
    TooLarge,
)
from shoal.coordination.session import obstacles, wire
from shoal.coordination.session.boottime import boottime
from shoal.coordination.session.client import Client, FailedConnection
from shoal.coordination.session.heartbeat import NEVER, SessionHeartbeat
from shoal.coordination.session.nodes import (
    Check,
    SessionState,
    WatchCallback,
    WatchEvent,
    WatchKind,
)
from shoal.coordination.session.requests import Proof, Requests
from shoal.coordination.session.security.tls import Tls
from shoal.coordination.session.turns import NodeTurns

log = structlog.get_logger()

T = TypeVar("T")

# A fraction of the negotiated session timeout.
PROOF = 0.7  # how long an answer proves the session, counted from the sending of its request
NODE_BYTES = 4096  # what a create needs besides its data at most: path, access list, header
CHECK = 1 / 40  # of it too: pause between two checks whether the proof has ended


class ZkSession(Requests):
    """Hold a session for the life of the ``async with`` block; make a new one when it is lost.

    ``hosts`` is "host:port,host:port/chroot"; the chroot is created if missing, and all paths
    are below it. ``credential`` is "scheme:secret" ("digest:user:password", or "sasl:user:password"
    for SASL with DIGEST-MD5): it is shown on every connection, and what the session creates is
    closed to connections without it. With ``tls`` the connections are encrypted, and the port of
    each server is its secureClientPort.
    ``max_request_bytes`` is what the servers accept (their jute.maxbuffer). A larger request is
    never sent: it would cost every user of the session the connection.

    **Is the session alive?** The absence of an answer proves nothing: a client that is cut off
    learns of its session's end only after it reconnects. ``proven_until`` is the moment
    (``boottime``) until which the server cannot have ended the session: the time at which the last
    answered request was *sent*, plus 0.7 of the timeout. Only requests that the leader has seen
    count (writes and ``sync``, which the heartbeat sends every sixth of the timeout, from a thread
    of its own: see ``heartbeat.py``): a follower that is cut off from its leader still answers
    reads for a while. An owner by an ephemeral node stops acting when that moment passes.

    **Lost connections.** A call without an answer fails with ConnectionLoss (retriable; a write
    may have happened), and so does a call made while there is no connection. All pending watches
    fire with EventKind.NONE. After SUSPENDED comes either CONNECTED, in the same session, or LOST
    and then CONNECTED in a new one: then ``generation`` is one higher.

    **A refused credential** ends the session for good, at the start and later. Every call raises
    CredentialRefused from then on, and so do ``connected``, ``proven`` and ``failed``.
    """

    def __init__(
        self,
        hosts: str,
        *,
        session_timeout_s: float = 10.0,
        name: str = "",
        connect_timeout_s: float = 15.0,
        close_timeout_s: float = 3.0,
        credential: str = "",
        tls: Tls | None = None,
        max_request_bytes: int = wire.MAX_REQUEST_BYTES,
    ) -> None:
        servers, slash, chroot = hosts.partition("/")
        self._servers, self._chroot = servers, (slash + chroot).rstrip("/")
        self.name = name
        self.max_request_bytes = max_request_bytes
        self._credential, self._acl = credential, wire.Acl(credential)
        self._tls = tls
        self.timeout_s = session_timeout_s  # negotiated, once connected
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self.state = SessionState.LOST
        self.generation = 0  # sessions so far; 0 before the first
        self.session_id = 0
        self.turns = NodeTurns()  # of the actors that share this session
        self._client: Client
        self._loop: asyncio.AbstractEventLoop
        self._closed = False
        self._obstacles: dict[str, Obstacle] = {}  # by server, since there was a connection
        self._probing: set[str] = set()  # servers that are being asked what is in the way
        self._probes_ended = asyncio.Event()
        self._probes_ended.set()
        self.is_refused = False  # the servers do not take the credential
        # Written by the connection thread, emptied by the loop.
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._drain_is_due = False
        self._inflight: dict[asyncio.Future[Any], str] = {}  # what each one asks
        self._listeners: list[Callable[[SessionState], None]] = []
        self._connected = asyncio.Event()
        self._over = asyncio.Event()  # closed, and what is asked from now on fails at once
        self._lost = asyncio.Event()
        self._lost.set()
        self._failed = asyncio.Event()
        self._doubters: dict[asyncio.Future[None], None] = {}  # in order, those in ``unproven``
        self._doubt_timer: asyncio.TimerHandle | None = None  # one for all of them
        self._proved = asyncio.Event()
        self._heartbeat: SessionHeartbeat

    # ------------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        """Connect, create the chroot, prove the session.

        Raises CannotConnect, BadAddress, BadCertificate, CredentialRefused; AccessDenied for the
        chroot.
        """
        self._loop = asyncio.get_running_loop()
        if self._tls is not None:
            self._tls.context()  # what is wrong with its files is told at once
        if {",", ":"} & set(self._chroot):  # one after each server would be part of the path
            raise BadAddress(self.address, "the path stands once, behind the last server")
        try:
            self._client = Client(
                self._servers,
                self.timeout_s,
                self._credential,
                self._tls,
                lambda failed: self._post(self._note_failed, failed),
            )
        except ValueError as error:
            raise BadAddress(self._servers, str(error)) from error
        self._heartbeat = SessionHeartbeat(
            self._client, self._full("/"), self.name, self._post, self._was_proved
        )
        self._client.add_listener(self._state_changed)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await asyncio.to_thread(self._client.start_async)
                await self.retry(self._begin)
        except TimeoutError as error:
            try:
                # Another probe may begin whenever one has ended.
                with suppress(TimeoutError):
                    async with asyncio.timeout(obstacles.PROBE_S):
                        await self._probes_ended.wait()
            finally:
                await self._close()
            raise CannotConnect.because_of(
                self._servers, self._connect_timeout_s, self._obstacles
            ) from error
        except BaseException:
            await self._close()
            raise
        self._heartbeat.start()
        return self

    async def _begin(self) -> None:
        await self.connected()
        await self.ensure("/")
        await self.multi([Check("/", -1)])  # proves the session, as a sync alone does not

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _close(self) -> None:
        """End the session at the server and the thread here; takes ``close_timeout_s`` at most.

        If the server cannot be reached in that time the session ends there by its timeout.
        """
        self._closed = True
        self._heartbeat.stop()
        done = asyncio.Event()
        # Not to_thread: kazoo may wait much longer than we want to, and the loop's executor is
        # waited for when the loop ends.
        threading.Thread(target=self._stop_client, args=(done,), daemon=True).start()
        try:
            async with asyncio.timeout(self._close_timeout_s):
                await done.wait()
        except TimeoutError:
            log.warning("session not closed in time", session=self.name, hosts=self._servers)
            self._client.drop_connection()
        finally:  # also if we are cancelled: calls that wait must end
            self._set_state(SessionState.LOST)
            self._fail_inflight(SessionClosed)
            self._over.set()

    def _stop_client(self, done: asyncio.Event) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception:
            # Runs on a thread of its own: no caller could see it.
            log.warning("closing the session failed", session=self.name, exc_info=True)
        finally:
            self._post(done.set)

    # ------------------------------------------------------------------ state

    @property
    def path(self) -> str:
        """The chroot, "/" if there is none."""
        return self._chroot or "/"

    @property
    def address(self) -> str:
        """Servers and chroot, host:port,host:port/path."""
        return self._servers + self.path

    @property
    def proven_until(self) -> float:
        """Until when (``boottime()``, seconds) the session is certainly alive."""
        session_id, sent = self._heartbeat.proof
        if self.state is SessionState.LOST or session_id != self.session_id:
            return NEVER
        return sent + PROOF * self.timeout_s

    @property
    def is_proven(self) -> bool:
        return boottime() < self.proven_until

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Id and password of the session: with them it can be taken over or ended."""
        return self._client._session_id, self._client._session_passwd

    def on_state(self, listener: Callable[[SessionState], None]) -> Callable[[], None]:
        """Call ``listener`` on the loop at every change. Returns a function that ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def connected(self) -> None:
        """Return when there is a connection. Raises CredentialRefused: there will be none."""
        await self._connected.wait()
        if self.is_refused:
            raise self._refusal()

    async def lost(self) -> None:
        """Return when the present session is known to be over (at once if there is none)."""
        await self._lost.wait()

    async def proven(self) -> None:
        """Return when the session is certainly alive. Raises CredentialRefused: it never will."""
        while not self.is_proven:
            if self.is_refused:
                raise self._refusal()
            self._proved.clear()
            await self._proved.wait()

    async def failed(self) -> NoReturn:
        """Raise what ends the session for good, CredentialRefused, when it does."""
        await self._failed.wait()
        raise self._refusal()

    async def unproven(self) -> None:
        """Return when the session that was proven is no longer certainly alive.

        A new session that is proven in the meantime does not count.
        """
        ended = asyncio.get_running_loop().create_future()
        self._doubters[ended] = None
        try:
            self._check_proof()
            await ended
        finally:
            self._doubters.pop(ended, None)

    def _check_proof(self) -> None:
        """Tell those who wait in ``unproven`` if the proof has ended; else check again soon."""
        if self._doubt_timer is not None:
            self._doubt_timer.cancel()
            self._doubt_timer = None
        left_s = self.proven_until - boottime()
        if left_s <= 0:
            for ended in self._doubters:
                if not ended.done():
                    ended.set_result(None)
        elif self._doubters:
            # Not all at once: the wait stands still while the machine is suspended.
            pause_s = min(left_s, CHECK * self.timeout_s)
            self._doubt_timer = asyncio.get_running_loop().call_later(pause_s, self._check_proof)

    def drop_connection(self) -> None:
        """Break the connection, but not the session: it is resumed with another one."""
        self._client.drop_connection()

    async def retry(self, call: Callable[[], Awaitable[T]], *, timeout_s: float | None = None) -> T:
        """Return what ``call`` returns, calling again after every retriable error.

        Only for what may safely happen twice. After ``timeout_s`` seconds (None: never) the last
        error is raised. Raises SessionClosed when the session is closed meanwhile.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                return await call()
            except CoordinationError as error:
                if not error.retriable or (self._closed and not self._connected.is_set()):
                    raise
                remaining_s = None if deadline is None else deadline - time.monotonic()
                if remaining_s is not None and remaining_s <= 0:
                    raise
                last = error
            # The change of state is at most one turn of the loop away.
            await asyncio.sleep(0)
            try:
                async with asyncio.timeout(remaining_s):
                    await self._connected_or_over()
            except TimeoutError:
                raise last from None

    async def _connected_or_over(self) -> None:
        waits = [asyncio.create_task(wait) for wait in (self.connected(), self._over.wait())]
        try:
            ended, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        for wait in ended:
            wait.result()

    # ------------------------------------------------------------------ requests

    def require_room(self, what: str, data: bytes) -> None:
        """Raise TooLarge if a node with ``data`` could not be created. ``what`` is for people."""
        size = NODE_BYTES + len(data)
        if size > self.max_request_bytes:
            raise TooLarge(what, size, self.max_request_bytes)

    def _watch(self, callback: WatchCallback | None) -> "_Watch | None":
        return None if callback is None else _Watch(self, callback)

    def _request(
        self,
        verb: str,
        path: str,
        request: Any,
        convert: Callable[[Any], T],
        proves: Proof = Proof.NOTHING,
    ) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        what = f"{verb} {path}"
        try:
            body = wire.serialize(request, what, self.max_request_bytes)
        except (TooLarge, MalformedRequest) as error:
            future.set_exception(error)
            return future
        if self.is_refused:
            future.set_exception(self._refusal())
            return future
        if self.state is not SessionState.CONNECTED:
            future.set_exception(SessionClosed(what) if self._closed else ConnectionLoss(what))
            return future
        self._inflight[future] = what
        sent, session_id = boottime(), self.session_id

        def answered(answer: Any, error: Exception | None) -> None:
            self._inflight.pop(future, None)  # kazoo may answer twice when it is closed
            if future.done():
                return
            if error is not None:
                if wire.says_refused(error):
                    future.set_exception(self._refusal())
                else:
                    future.set_exception(wire.translate(error, verb, path))
                return
            if proves is not Proof.NOTHING:
                self._was_proved()
            try:
                future.set_result(convert(answer))
            except Exception as failure:  # noqa: BLE001 - the caller has to hear of it
                future.set_exception(failure)

        def deliver(answer: Any, error: Exception | None) -> None:
            """On the connection thread: the proof does not wait for the loop."""
            if wire.says_expired(answer, error):
                self._client.doubt(session_id)
            elif proves is not Proof.NOTHING and error is None:
                confirms = proves is Proof.OF_SESSION
                self._heartbeat.prove(session_id, sent, confirms=confirms)
            self._post(answered, answer, error)

        self._client.submit(request, body, session_id, deliver)
        return future

    # ------------------------------------------------------------------ hand-over

    def _post(self, function: Callable[..., None], *args: Any) -> None:
        """Have ``function(*args)`` called on the loop. Any thread; keeps the order.

        One wake-up of the loop serves everything that is posted until it has woken.
        """
        self._inbox.append((function, args))
        if not self._drain_is_due:
            self._drain_is_due = True
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:
                return  # the loop is closed: there is no receiver left

    def _drain(self) -> None:
        self._drain_is_due = False  # before emptying: what is posted from now on wakes us again
        while self._inbox:
            function, args = self._inbox.popleft()
            try:
                function(*args)
            except Exception:  # it is no reason to keep anything else from what it waits for
                log.exception("callback failed", session=self.name)

    def _state_changed(self, state: str) -> None:
        """kazoo's listener, on the connection thread."""
        session_id = self._client._session_id or 0
        self._heartbeat.connected(session_id if state == SessionState.CONNECTED else 0)
        self._post(self._take_state, SessionState(state), session_id, self._client.is_refused)

    def _take_state(self, state: SessionState, session_id: int, is_refused: bool) -> None:
        if is_refused and not self.is_refused:
            self.is_refused = True
            log.error("session refused", session=self.name, error=str(self._refusal()))
        if state is SessionState.CONNECTED and session_id != self.session_id:
            self.session_id = session_id
            self.generation += 1
        self._set_state(state)
        if state is SessionState.SUSPENDED:
            # Sent after kazoo noticed but before we did: kazoo may still deliver them later.
            self._fail_inflight(ConnectionLoss)
        elif state is SessionState.LOST:
            self._fail_inflight((lambda _: self._refusal()) if self.is_refused else SessionLost)
        if self.is_refused:  # callers that wait for a session are told
            for event in (self._failed, self._connected, self._proved):
                event.set()

    def _refusal(self) -> CredentialRefused:
        return CredentialRefused(self._servers, self._credential.partition(":")[0])

    def _set_state(self, state: SessionState) -> None:
        if state is self.state:
            return
        self.state = state
        if state is SessionState.LOST:
            self._lost.set()
            self._check_proof()
        elif state is SessionState.CONNECTED:
            self._lost.clear()
            self._obstacles.clear()
        (self._connected.set if state is SessionState.CONNECTED else self._connected.clear)()
        log.debug("session state", session=self.name, state=state, generation=self.generation)
        for listener in list(self._listeners):
            listener(state)

    def _fail_inflight(self, error: Callable[[str], CoordinationError]) -> None:
        for future, what in list(self._inflight.items()):
            if not future.done():
                future.set_exception(error(what))

    # ------------------------------------------------------------------ obstacles

    def _note_failed(self, failed: FailedConnection) -> None:
        """A server gave no session. Find out why, and log it when it is news."""
        if self._closed or self.state is SessionState.CONNECTED:
            return
        if failed.address is None:
            self._note_obstacle(failed.server, Obstacle.UNKNOWN_HOST)
        elif obstacle := obstacles.evident(failed.error):
            self._note_obstacle(failed.server, obstacle)
        elif failed.server not in self._probing:
            # A thread of its own: it may have to wait, and nothing is to wait for it.
            threading.Thread(
                target=self._probe, args=(failed.server, failed.address), daemon=True
            ).start()
            self._probing.add(failed.server)
            self._probes_ended.clear()

    def _probe(self, server: str, address: tuple[str, int]) -> None:
        host = server.rpartition(":")[0].strip("[]")
        obstacle = Obstacle.REFUSES
        try:
            obstacle = obstacles.probe(address, self._tls, host)
        finally:
            self._post(self._probed, server, obstacle)

    def _probed(self, server: str, obstacle: Obstacle) -> None:
        self._probing.discard(server)
        if not self._probing:
            self._probes_ended.set()
        if not self._closed and self.state is not SessionState.CONNECTED:
            self._note_obstacle(server, obstacle)

    def _note_obstacle(self, server: str, obstacle: Obstacle) -> None:
        if self._obstacles.get(server) is not obstacle:
            self._obstacles[server] = obstacle
            log.warning(
                "a ZooKeeper server gives no session",
                session=self.name,
                server=server,
                reason=str(obstacle),
            )

    # ------------------------------------------------------------------ proof

    def _was_proved(self) -> None:
        self.timeout_s = self._client.negotiated_timeout_s
        self._proved.set()


class _Watch:
    """A one-shot watch that fires on the loop.

    Two watches of one callback are equal, so kazoo keeps one of them for a path: re-reading a
    path with the same callback does not pile watches up.
    """

    __slots__ = ("_callback", "_session")

    def __init__(self, session: ZkSession, callback: WatchCallback) -> None:
        self._session, self._callback = session, callback

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watch) and self._callback == other._callback

    def __hash__(self) -> int:
        return hash(self._callback)

    def __call__(self, event: Any) -> None:
        path = (event.path or "")[len(self._session._chroot) :] if event.path else ""
        self._session._post(self._callback, WatchEvent(WatchKind(event.type), path))
