"""How masters read references: without waiting for stores that do not answer.

One look serves all who ask for the same meanwhile, and for some seconds after it. Who makes a
payload waits a moment for a look under way; if there is no outcome by then, the worker is told to
ask again, and the outcome waits for it here. A store that fails is left alone for a while, and
asked by one look at a time until it answers.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from shoal.runtime.breaker import Breaker
from shoal.runtime.secret_stores.errors import (
    SecretStoreError,
    StoreGivenUp,
    StoreUnavailable,
)
from shoal.runtime.secret_stores.reference import SecretReference
from shoal.runtime.secret_stores.stores import SecretStores

log = structlog.get_logger()

K = TypeVar("K")
V = TypeVar("V")

WAIT_S = 0.1  # for a look under way; a call of a worker is about many attempts
DOWN_S = 1.0  # time without a new request after a refusal or a failure
_FAILURES = 3  # of a store in a row: it is left alone then
_MOST_KEPT = 2_000


@dataclass
class _StoreState:
    """What is known of one store."""

    breaker: Breaker = field(default_factory=lambda: Breaker(failures=_FAILURES, retry_s=DOWN_S))
    quiet_until: float = 0.0
    failure: str = ""
    looks: dict[asyncio.Task[None], float] = field(default_factory=dict)  # when each began


@dataclass(frozen=True)
class _Lookup:
    until: float
    value: str = field(default="", repr=False)
    error: SecretStoreError | None = None


class Resolver:
    """Values of references. One event loop; ``aclose`` it."""

    def __init__(self, stores: SecretStores, now_s: Callable[[], float] = time.monotonic) -> None:
        self._stores, self._now_s = stores, now_s
        self._lines: dict[str, _StoreState] = {}
        self._looks: dict[SecretReference, asyncio.Task[None]] = {}
        self._outcomes: OrderedDict[SecretReference, _Lookup] = OrderedDict()
        self._waiting: OrderedDict[tuple[int, SecretReference], float] = OrderedDict()  # since when

    async def aclose(self) -> None:
        """Forget everything, and wait for nothing."""
        for look in self._looks.values():
            look.cancel()
        await asyncio.gather(*self._looks.values(), return_exceptions=True)
        self._outcomes.clear()

    async def value(self, project: str, text: str, asker: int) -> str:
        """Return a secret of a project, within a moment, to the attempt with the id ``asker``.

        Raises StoreUnavailable, which is retriable: ask again soon; StoreGivenUp when that has
        gone on for too long; InvalidReference, SecretRefused.
        """
        reference = self._stores.checked(project, text)
        try:
            found = await self._value(reference)
        except StoreUnavailable as error:
            raise self._with_patience(reference, asker, error) from error
        self._waiting.pop((asker, reference), None)
        return found

    async def _value(self, reference: SecretReference) -> str:
        if (known := self._known(reference)) is None:
            line = self._lines.setdefault(reference.store, _StoreState())
            look = self._looks.get(reference) or self._begun(reference, line)
            await asyncio.wait({look}, timeout=0.0 if self._is_slow(line) else WAIT_S)
            if (known := self._known(reference)) is None:
                raise StoreUnavailable(f"the store {reference.store} has not answered yet")
        if known.error is not None:
            raise known.error
        return known.value

    def _known(self, reference: SecretReference) -> _Lookup | None:
        found = self._outcomes.get(reference)
        return found if found is not None and self._now_s() < found.until else None

    def _is_slow(self, line: _StoreState) -> bool:
        """Say whether a caller has waited in vain for a look that is still under way."""
        now = self._now_s()
        return any(now - begun > WAIT_S for begun in line.looks.values())

    def _begun(self, reference: SecretReference, line: _StoreState) -> asyncio.Task[None]:
        """Begin a look. Raises StoreUnavailable if the store is left alone just now."""
        now = self._now_s()
        if now < line.quiet_until or not line.breaker.allows(now):
            raise StoreUnavailable(line.failure)
        look = asyncio.create_task(self._look(reference, line), name="look for a secret")
        self._looks[reference], line.looks[look] = look, now

        def over(_: object) -> None:
            del self._looks[reference], line.looks[look]

        look.add_done_callback(over)
        return look

    async def _look(self, reference: SecretReference, line: _StoreState) -> None:
        """Look, and keep what comes of it."""
        value, failure = "", None
        try:
            value = await self._stores.look(reference)
        except SecretStoreError as error:
            failure = error
        now = self._now_s()
        if isinstance(failure, StoreUnavailable):
            if line.breaker.is_closed:
                log.warning("store of secrets gives no answer", why=str(failure))
            line.breaker.failed(now)
            line.failure = str(failure)
            line.quiet_until = max(line.quiet_until, now + failure.pause_s)
        else:
            line.breaker.succeeded()
        kept_s = DOWN_S if failure else self._stores.settings_of(reference).cache_s
        _keep(self._outcomes, reference, _Lookup(now + kept_s, value, failure))

    def _with_patience(
        self, reference: SecretReference, asker: int, error: StoreUnavailable
    ) -> StoreUnavailable:
        """Return what to raise: after some time it is the last word for who asks."""
        key, now = (asker, reference), self._now_s()
        since = self._waiting.get(key, now)
        if now - since < self._stores.settings_of(reference).patience_s:
            _keep(self._waiting, key, since)
            return error
        self._waiting.pop(key, None)
        return StoreGivenUp(
            f"{reference} could not be read for {now - since:.0f} s: {error}; start the task again "
            "when the store answers, or give it retries"
        )


def _keep(found: OrderedDict[K, V], key: K, value: V) -> None:
    found[key] = value
    found.move_to_end(key)
    while len(found) > _MOST_KEPT:
        found.popitem(last=False)
