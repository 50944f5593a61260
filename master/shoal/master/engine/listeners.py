"""What the parts of a master hear from each other, without knowing each other.

A part that wants to hear of something overrides the method for it and is registered once. All
calls are made on the event loop. Those without a result are hints: they must not fail, and their
parts find by polling what they miss with a lost hint.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

from shoal.core.runs.run import Action, Decision, Run
from shoal.sql import UnitOfWork


class EndOfRuns(Protocol):
    """Part of one transaction that stores the end of runs; made before anything is written."""

    async def write(self, at: datetime) -> None:
        """Write what follows from the ends, which are written by now."""

    def committed(self) -> None:
        """The transaction was committed. A hint: it must not fail."""


class Listener:
    """Hears nothing until it overrides a method."""

    async def on_ending(self, uow: UnitOfWork, runs: Sequence[Run]) -> EndOfRuns | None:
        """Take part in a transaction that stores the end of ``runs``. Called after its fence."""
        return None

    def on_stored(self, run: Run, decision: Decision) -> None:
        """A decision was committed."""

    def on_ended(self, run: Run) -> None:
        """The end of a run was committed."""

    def on_quarantined(self, instance_ids: Collection[int]) -> None:
        """It was committed that these runs are quarantined."""

    def on_readmitted(self, run: Run) -> None:
        """A quarantined run takes messages again: the decision of its trial was committed."""

    def on_dropped(self, instance_id: int) -> None:
        """A run was given up together with its partition."""

    def on_commands(self, partitions: Collection[int]) -> None:
        """Commands for these partitions were committed."""

    def on_action(self, run: Run, action: Action) -> None:
        """An action of a committed decision is to be performed that is not for the queue."""

    def on_queue_failure(self) -> None:
        """The queue could not be reached: entries may be missing."""

    def on_workers_changed(self) -> None:
        """Workers have come or gone."""

    def notify(self, partition: int) -> None:
        """A notification about a partition of this master has arrived."""


_METHODS = [name for name in vars(Listener) if not name.startswith("_")]


class Listeners(Listener):
    """Passes on what it hears to all that are registered and override the method for it."""

    def __init__(self) -> None:
        self._of: dict[str, list[Listener]] = {method: [] for method in _METHODS}

    def register(self, *listeners: Listener) -> None:
        """Let these hear what comes from now on."""
        for one in listeners:
            for method, some in self._of.items():
                if getattr(type(one), method) is not getattr(Listener, method):
                    some.append(one)

    async def endings(self, uow: UnitOfWork, runs: Sequence[Run]) -> list[EndOfRuns]:
        """Return what takes part in a transaction that stores the end of ``runs``."""
        found = [await one.on_ending(uow, runs) for one in self._of["on_ending"]]
        return [ending for ending in found if ending is not None]

    def on_stored(self, run: Run, decision: Decision) -> None:
        for one in self._of["on_stored"]:
            one.on_stored(run, decision)

    def on_ended(self, run: Run) -> None:
        for one in self._of["on_ended"]:
            one.on_ended(run)

    def on_quarantined(self, instance_ids: Collection[int]) -> None:
        for one in self._of["on_quarantined"]:
            one.on_quarantined(instance_ids)

    def on_readmitted(self, run: Run) -> None:
        for one in self._of["on_readmitted"]:
            one.on_readmitted(run)

    def on_dropped(self, instance_id: int) -> None:
        for one in self._of["on_dropped"]:
            one.on_dropped(instance_id)

    def on_commands(self, partitions: Collection[int]) -> None:
        for one in self._of["on_commands"]:
            one.on_commands(partitions)

    def on_action(self, run: Run, action: Action) -> None:
        for one in self._of["on_action"]:
            one.on_action(run, action)

    def on_queue_failure(self) -> None:
        for one in self._of["on_queue_failure"]:
            one.on_queue_failure()

    def on_workers_changed(self, *_view: Any) -> None:
        for one in self._of["on_workers_changed"]:
            one.on_workers_changed()

    def notify(self, partition: int) -> None:
        for one in self._of["notify"]:
            one.notify(partition)
