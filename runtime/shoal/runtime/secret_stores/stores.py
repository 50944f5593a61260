"""The stores of the settings, and one look into one of them."""

import asyncio
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

import structlog
from pydantic import ValidationError

from shoal.core.checks.secrets import secret_problems
from shoal.core.errors import ShoalError, UnusablePlugin
from shoal.core.hints import Hints
from shoal.runtime import plugin_packages
from shoal.runtime.secret_stores.errors import (
    InvalidReference,
    SecretRefused,
    SecretStoreError,
    StoreUnavailable,
)
from shoal.runtime.secret_stores.reference import SecretReference, is_within, open_paths
from shoal.runtime.secret_stores.store import SecretStore, StoreSettings
from shoal.runtime.settings import ClusterSettings, InvalidSettings
from shoal.runtime.side.own_thread import call_in_own_thread

log = structlog.get_logger()


AT_ONCE = 4  # looks into one store, of one process
_GRACE_S = 0.5  # beyond the timeout of a store, which sees to that itself


class SecretStores:
    """Reads references for projects. One event loop; stores block in threads of their own."""

    def __init__(self, stores: Mapping[str, SecretStore[Any]]) -> None:
        self._stores = stores
        self._rooms = {name: asyncio.Semaphore(AT_ONCE) for name in stores}

    @classmethod
    def of(cls, cluster: ClusterSettings) -> "SecretStores":
        """Return the stores of the settings. None of them is asked. Raises InvalidSettings."""
        return cls({name: open_store(name, one) for name, one in cluster.secret_stores.items()})

    def checked(self, project: str, text: str) -> SecretReference:
        """Return what a text refers to, if the project may read it. Raises InvalidReference."""
        reference = SecretReference.parse(text)
        store = self._stores.get(reference.store)
        if store is None:
            hint = Hints().of(reference.store, self._stores)
            known = ", ".join(sorted(self._stores)) or "none"
            raise InvalidReference(
                f"names the store {reference.store}, which there is not"
                + (hint or f"; there are: {known}")
                + " ([cluster.secret_stores] of the settings)"
            )
        settings: StoreSettings = store.settings
        opened = sorted(set(open_paths(settings.paths, settings.projects, project)))
        if not is_within(reference.path, opened):
            raise InvalidReference(
                f"leads to {reference.path} in the store {reference.store}, which the project "
                f"{project} may not read; it may: {', '.join(opened) or 'nothing'}"
            )
        if problem := store.field_problem(reference.field):
            raise InvalidReference(problem)
        return reference

    def settings_of(self, reference: SecretReference) -> StoreSettings:
        """Return the settings of the store of a checked reference."""
        found: StoreSettings = self._stores[reference.store].settings
        return found

    async def read(self, project: str, text: str) -> str:
        """Return what a project's secret is now.

        Ends in any case when the time of the store is over. Raises InvalidReference, SecretRefused,
        StoreUnavailable.
        """
        return await self.look(self.checked(project, text))

    async def look(self, reference: SecretReference) -> str:
        """Do the same for a checked reference."""
        store, room = self._stores[reference.store], self._rooms[reference.store]
        limit_s = store.settings.timeout_s + _GRACE_S
        try:
            async with asyncio.timeout(limit_s):
                await room.acquire()
                value = await call_in_own_thread(
                    lambda: store.read(reference.path, reference.field),
                    "secret store",
                    room.release,
                )
        except TimeoutError:
            raise StoreUnavailable(
                f"the store {reference.store} has not answered within {limit_s:g} s"
            ) from None
        except SecretStoreError:
            raise
        except ShoalError as error:
            raise StoreUnavailable(f"{reference} cannot be read: {error}") from error
        except Exception as error:  # of a plug-in; its text may hold anything
            log.exception("store failed", store=reference.store)
            raise StoreUnavailable(
                f"{reference} cannot be read: {type(error).__name__} in the store's plug-in"
            ) from error
        if not isinstance(value, str):
            raise SecretRefused(f"{reference} is not text")
        if problem := next(iter(secret_problems(value)), None):
            raise SecretRefused(f"{reference} cannot be a secret: it {problem}")
        return value


ENTRY_POINT_GROUP = "shoal.secret_stores"


def installed() -> dict[str, EntryPoint]:
    """Return the kinds that there are, by name; none is imported yet."""
    return plugin_packages.installed(ENTRY_POINT_GROUP)


def load_store_kind(kind: str) -> type[SecretStore[Any]]:
    """Import one installed kind. Raises UnusablePlugin if its package is broken."""
    found: type[SecretStore[Any]] = plugin_packages.load(
        installed()[kind], SecretStore, f"kind of store {kind!r}", {"Settings": StoreSettings}
    )
    return found


def open_store(name: str, table: Mapping[str, Any]) -> SecretStore[Any]:
    """Return the store that a table of the settings describes. Raises InvalidSettings."""
    where = f"[cluster.secret_stores.{name}]"
    kinds = installed()
    kind = table.get("kind")
    if kind not in kinds:
        known = ", ".join(sorted(kinds)) or "none"
        raise InvalidSettings(
            f"{where}: kind: there is no kind {kind!r} of stores here; installed are: {known}"
        )
    try:
        found = load_store_kind(str(kind))
    except UnusablePlugin as error:
        raise InvalidSettings(f"{where}: {error}") from error
    try:
        return found(name, found.Settings.model_validate(dict(table)))
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise InvalidSettings("\n".join([f"settings of {where} are wrong:", *lines])) from error
