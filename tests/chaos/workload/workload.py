"""Random work for a cluster that is being hurt: runs are started, paused, stopped, recovered.

The workload remembers what it asked for and what was acknowledged; the checker compares.
"""

import asyncio
import random
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tests.chaos.records import now_s
from tests.chaos.workload.dags import (
    DATED,
    GATE,
    GATE_SLOTS,
    PROGRAM,
    Site,
    composed,
    program,
    random_workflow,
    tickers,
)
from tests.chaos.workload.rest import Api, Refused

WORKFLOWS = 16
UNFINISHED = ["QUEUED", "RUNNING", "PAUSING", "PAUSED", "STOPPING"]
COMPOSED = 0.2  # share of the starts
STOPPED = 0.15  # share of those that are stopped
DAYS = 3  # of a backfill
_FIRST_DAY = date(2001, 1, 1)
_LOOK_S = 1.0  # between two looks at what is open
_EDIT_S = 8.0  # between two edits of the program that tasks have as a resource, on average
_PAUSE_S = 1.5  # before each command of a plot, on average
# What is done to an instance: commands, with a moment of random length before each.
_PLOTS: Sequence[Sequence[str]] = (
    ("PAUSE", "RESUME"),
    ("PAUSE", "RESUME"),
    ("STOP",),
    ("STOP", "RESUME"),
    ("PAUSE", "STOP", "RESUME"),
    ("STOP", "STOP"),
    ("RERUN",),
)


@dataclass
class Asked:
    """One command that was asked for. ``ids`` are all ids that the key was acknowledged with."""

    key: str
    type: str
    instance_id: int | None = None
    ids: set[int] = field(default_factory=set)
    refused: str | None = None

    @property
    def acknowledged(self) -> bool:
        return bool(self.ids)


@dataclass(frozen=True)
class Edit:
    """A version of the program, and when it was put there; seconds since boot."""

    version: int
    began_s: float
    ended_s: float


class Workload:
    """Starts ``rate`` instances a second, as long as fewer than ``max_open`` are open."""

    def __init__(
        self,
        api: Api,
        *,
        seed: int,
        ledger: Path,
        rate: float,
        marker: str,
        groups: Sequence[str] = ("default",),
        max_open: int = 30,
    ) -> None:
        self.asked: list[Asked] = []
        self.edits: list[Edit] = []
        self._api, self._rate, self._max_open = api, rate, max_open
        self._seed, self._rng = seed, random.Random(seed)
        self.site = Site(ledger, marker, groups)
        self._names: list[str] = []
        self._composed: list[str] = []  # workflows of which nothing but starts and stops is asked
        self._open = 0  # as of the last look
        self._serial = self._started = 0
        self._generator: asyncio.Task[None] | None = None
        self._plots: set[asyncio.Task[None]] = set()

    async def start(self, sink: str = "") -> None:
        """Publish the workflows and begin to start instances; ``sink`` is told of their ends."""
        self.site.ledger.mkdir(parents=True, exist_ok=True)
        if sink:
            await self._api.tell(sink)
        await self._edit()
        for number in range(WORKFLOWS):
            definition = random_workflow(f"random-{number:02d}", self._rng, self.site)
            await self._api.publish(definition)
            self._names.append(definition["name"])
        await self._api.put_group(GATE, GATE_SLOTS)
        for definition in composed(self.site):
            await self._api.publish(definition)
            self._composed.append(definition["name"])
        for definition in tickers(self.site, enabled=True):
            await self._api.publish(definition)
        self._generator = asyncio.create_task(self._generate())

    async def stop(self) -> None:
        """Start no more instances, neither by hand nor by schedule. Raises what went wrong."""
        if self._generator is not None:
            self._generator.cancel()
            with suppress(asyncio.CancelledError):
                await self._generator
        for definition in tickers(self.site, enabled=False):
            await self._api.publish(definition)

    async def abandon(self) -> None:
        """End what still runs here, whatever has become of it. Nothing is raised."""
        tasks = [*self._plots, *([self._generator] if self._generator is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def drained(self, timeout_s: float) -> list[int]:
        """Wait until every instance has ended; return those that have not after ``timeout_s``.

        Raises what went wrong in the workload itself, TimeoutError if the API never answers.
        """
        left: list[int] | None = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    busy = self._busy()
                    # Before the look at instances: what is carried out later has no command now.
                    backfills = await self._api.open_backfills()
                    pending = await self._api.pending_commands()
                    left = await self._resume_paused()
                    if not (busy or left or backfills) and pending == 0:
                        break
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            if left is None:
                raise
        finally:
            for plot in self._plots:
                plot.cancel()
            await asyncio.gather(*self._plots, return_exceptions=True)
        return left

    def _busy(self) -> bool:
        """Say whether commands are still to come. Raises what a plot has failed with."""
        for plot in self._plots:
            if plot.done():
                plot.result()
        return bool(self._plots)

    async def _resume_paused(self) -> list[int]:
        """Return the open instances; those that are paused go on."""
        found = [item async for item in self._api.instances(UNFINISHED)]
        for item in found:
            if item["state"] == "PAUSED":
                await self._ask("RESUME", item["id"])
        return [item["id"] for item in found]

    # -- traffic -----------------------------------------------------------------------------

    async def _generate(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look())
            group.create_task(self._keep_editing(random.Random(f"{self._seed}/edits")))
            while True:
                await asyncio.sleep(self._rng.expovariate(self._rate))
                if self._open < self._max_open:
                    self._open += 1
                    self._started += 1
                    # Its own dice: what happens to the n-th does not hang on the cluster's speed.
                    self._spawn(self._one_instance(random.Random(f"{self._seed}/{self._started}")))

    def _spawn(self, plot: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(plot)
        self._plots.add(task)
        # One that failed stays, so that drained() raises its error.
        task.add_done_callback(lambda done: self._plots.discard(done) if _went_well(done) else None)

    async def _look(self) -> None:
        while True:
            self._open = len([item async for item in self._api.instances(UNFINISHED)])
            await asyncio.sleep(_LOOK_S)

    async def _keep_editing(self, rng: random.Random) -> None:
        while True:
            await asyncio.sleep(rng.expovariate(1 / _EDIT_S))
            await self._edit()

    async def _edit(self) -> None:
        """Put the next version of the program there."""
        version, began_s = len(self.edits) + 1, now_s()
        await self._api.put_resource(PROGRAM, program(version), version)
        self.edits.append(Edit(version, began_s, now_s()))

    async def _one_instance(self, rng: random.Random) -> None:
        """Start an instance; do something to every third one while it runs."""
        if rng.random() < COMPOSED:
            await self._one_composed(rng)
            return
        name = rng.choice(self._names)
        plot = rng.choice(_PLOTS) if rng.random() < 0.33 else ()
        pauses_s = [rng.expovariate(1 / _PAUSE_S) for _ in plot]
        recovers = rng.random() < 0.4
        asked = await self._ask("START", None, project="default", workflow=name)
        outcome = await self._outcome(asked)
        if outcome is None:
            return
        for kind, pause_s in zip(plot, pauses_s, strict=True):
            await asyncio.sleep(pause_s)
            await self._ask(kind, outcome)
        if recovers:
            await self._recover(outcome)

    async def _one_composed(self, rng: random.Random) -> None:
        """Start a workflow with others in it, or a backfill; stop some of the former."""
        name = rng.choice(self._composed)
        if name == DATED:
            await self._backfill(rng)
            return
        asked = await self._ask("START", None, project="default", workflow=name)
        outcome = await self._outcome(asked)
        if outcome is not None and rng.random() < STOPPED:
            await asyncio.sleep(rng.expovariate(1 / _PAUSE_S))
            await self._ask("STOP", outcome)

    async def _backfill(self, rng: random.Random) -> None:
        """Ask for some days, each time others."""
        self._serial += 1
        first = _FIRST_DAY + timedelta(days=DAYS * self._serial)
        body = {
            "workflow": DATED,
            "from": first.isoformat(),
            "to": (first + timedelta(days=DAYS - 1)).isoformat(),
            "parallel": rng.randint(1, 3),
        }
        asked = Asked(f"{self.site.marker}-{self._serial}", "BACKFILL")
        self.asked.append(asked)
        try:
            for _ in range(2 if self._serial % 5 == 0 else 1):
                asked.ids.add(await self._api.backfill(asked.key, body))
        except Refused as error:
            asked.refused = str(error)

    async def _recover(self, instance_id: int) -> None:
        while (state := await self._api.state(instance_id)) not in ("SUCCEEDED", "STOPPED"):
            if state == "FAILED":
                await self._ask("RECOVER", instance_id)
                return
            if state == "PAUSED":  # by a command whose answer came late
                await self._ask("RESUME", instance_id)
            await asyncio.sleep(_LOOK_S)

    async def _outcome(self, asked: Asked) -> int | None:
        """Return the instance that a command has ended in."""
        for command_id in asked.ids:
            found = (await self._api.outcome(command_id))["result_instance_id"]
            return None if found is None else int(found)
        return None

    async def _ask(self, kind: str, instance_id: int | None, **fields: Any) -> Asked:
        """Send a command; every fifth one twice, which must change nothing."""
        self._serial += 1
        asked = Asked(f"{self.site.marker}-{self._serial}", kind, instance_id)
        self.asked.append(asked)
        body = {"type": kind, **fields}
        if instance_id is not None:
            body["instance_id"] = instance_id
        try:
            for _ in range(2 if self._serial % 5 == 0 else 1):
                asked.ids.add(await self._api.command(asked.key, body))
        except Refused as error:
            asked.refused = str(error)
        return asked


def _went_well(task: asyncio.Task[None]) -> bool:
    return task.cancelled() or task.exception() is None
