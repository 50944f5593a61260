"""Which masters answer this worker, and which partitions it leaves to other workers meanwhile.

A worker may reach ZooKeeper and not a master: a firewall, a wrong address, an expired certificate.
It could claim that master's tasks and never run them. So each master has a breaker. Calls that
find no answer open it; while it is open, entries of the master's partitions are not claimed here;
a probe that is answered closes it.
"""

import asyncio
from collections.abc import Callable

import structlog

from shoal.proto.errors import RpcError
from shoal.runtime.breaker import Breaker
from shoal.worker.masters import Masters

log = structlog.get_logger()

FAILURES = 2  # in a row; the first one starts the probes, so the second follows at once
PROBE_EVERY_S = 1.0  # an empty request each; its tasks are with other workers meanwhile
PROBE_TIMEOUT_S = 2.0  # a sound master answers an empty request within milliseconds


class Reachability:
    """The breakers of one worker. Belongs to its loop; probes run in ``tasks``."""

    def __init__(self, masters: Masters, tasks: asyncio.TaskGroup, partitions: int) -> None:
        self._masters, self._tasks = masters, tasks
        self._on_change: list[Callable[[], None]] = []
        self._count = partitions
        self._breakers: dict[str, Breaker] = {}  # of masters that left a call unanswered
        self._owned: dict[str, frozenset[int]] = {}  # by those whose breakers are not closed
        self._probes: set[asyncio.Task[None]] = set()
        self._closed = False
        self._all_owned = 0  # partitions that had an owner, at the last read
        self._changed = asyncio.Event()
        masters.subscribe(on_answer=self._answered, on_silence=self._unanswered)

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Have ``on_change`` called when ``partitions`` or ``masters`` has changed."""
        self._on_change.append(on_change)

    @property
    def masters(self) -> list[str]:
        """Addresses of the masters that do not answer, sorted."""
        return sorted(self._owned)

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions of those masters."""
        return frozenset().union(*self._owned.values())

    @property
    def unreachable_reason(self) -> str | None:
        """Why the worker can run nothing at all; None if some master answers, or there is none."""
        if not self._owned or len(self.partitions) < self._all_owned:
            return None
        return f"cannot reach master {', '.join(self.masters)}"

    def close(self) -> None:
        """Probe no more: the worker ends."""
        self._closed = True
        for probe in self._probes:
            probe.cancel()

    async def changed(self, timeout_s: float) -> None:
        """Return after the next change, or after ``timeout_s`` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _answered(self, address: str) -> None:
        breaker = self._breakers.pop(address, None)
        if breaker is None:
            return
        breaker.succeeded()
        if address in self._owned:
            log.info("master answers again", master=address)
            self._set(address, None)

    def _unanswered(self, address: str) -> None:
        if self._closed:
            return
        breaker = self._breakers.get(address)
        if breaker is None:
            breaker = Breaker(failures=FAILURES, retry_s=PROBE_EVERY_S)
            self._breakers[address] = breaker
            probe = self._tasks.create_task(self._probe_until_answered(address, breaker))
            self._probes.add(probe)
            probe.add_done_callback(self._probes.discard)
        breaker.failed(asyncio.get_running_loop().time())

    async def _probe_until_answered(self, address: str, breaker: Breaker) -> None:
        """Call the master from time to time, until it answers or owns nothing."""
        loop = asyncio.get_running_loop()
        while self._breakers.get(address) is breaker:
            if breaker.allows(loop.time()):
                try:
                    await self._masters.probe(address, PROBE_TIMEOUT_S)
                    return  # ``_answered`` has seen to the rest
                except RpcError as error:
                    why = str(error)
                if not await self._note_owned(address, breaker, why):
                    return
            await asyncio.sleep(PROBE_EVERY_S / 2)

    async def _note_owned(self, address: str, breaker: Breaker, why: str) -> bool:
        """Learn what a silent master owns. Returns False if there is nothing to wait for."""
        owners = await self._masters.addresses(range(self._count))
        if self._breakers.get(address) is not breaker:
            return False  # answered meanwhile
        owned = frozenset(p for p, owner in owners.items() if owner == address)
        self._all_owned = len(owners)
        if not owned:  # it has gone, and others have its partitions
            del self._breakers[address]
            self._set(address, None)
            return False
        if not breaker.is_closed:
            if address not in self._owned:
                log.warning("master does not answer: leaving its tasks", master=address, why=why)
            self._set(address, owned)
        return True

    def _set(self, address: str, owned: frozenset[int] | None) -> None:
        """Note what to leave to others because of one master; None: nothing."""
        if self._owned.get(address) == owned:
            return
        if owned is None:
            del self._owned[address]
        else:
            self._owned[address] = owned
        self._changed.set()
        self._changed = asyncio.Event()
        for notify in self._on_change:
            notify()
