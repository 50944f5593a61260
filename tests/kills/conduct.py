"""Carry cases out on a cluster, several side by side, each with a kill of its own."""

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.workload.rest import Api
from tests.kills.judging import AttemptRow, Evidence, offences
from tests.kills.killing import Killer
from tests.kills.kinds.kind import Kind
from tests.kills.plan import Case, Phase, Target
from tests.kills.rows import Rows
from tests.kills.sides.side import until_looked

RETRIES = 5
_LOOK_S = 0.02
_RECOVERY_S = 8.0  # about, after a kill of a master or worker
_QUIET_S = 20.0  # for what was left to go, after the end of a run
_FINAL = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


@dataclass
class Result:
    """What came of a case. Stored as JSON."""

    kind: str
    number: int
    target: str
    phase: str
    killed: str
    live: bool  # a job was alive at the kill
    state: str
    attempts: list[dict[str, Any]]
    offences: list[str]
    took_s: float
    gone_s: float | None
    alone: bool
    stubborn: bool
    idempotent: bool
    instance: int
    doubles: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass
class Conductor:
    """Runs cases of one kind on one cluster."""

    cluster: Cluster
    api: Api
    rows: Rows
    killer: Killer
    kind: Kind

    async def run(self, case: Case) -> Result:
        """Carry a case out to its end."""
        began = time.monotonic()
        instance = await self._start(case)
        partition = await self.rows.partition(instance)
        live, at, killed = await self._kill(case, instance, partition)
        state = await self._ended(instance)
        left = await self._quiet(case)
        seen = await self._evidence(case, instance, killed, state, left, live, at)
        return Result(
            kind=case.kind,
            number=case.number,
            target=case.target,
            phase=case.phase,
            killed=killed,
            live=bool(live),
            state=state,
            attempts=[asdict(row) for row in seen.attempts],
            offences=offences(seen),
            took_s=round(time.monotonic() - began, 2),
            gone_s=seen.gone_s,
            alone=seen.alone,
            stubborn=case.stubborn,
            idempotent=case.idempotent,
            instance=instance,
            doubles=list(seen.doubles),
            left=left,
        )

    async def _start(self, case: Case) -> int:
        await self.kind.prepare_all(self.api, case)
        task = {"name": "work", "retries": RETRIES, **self.kind.task(case)}
        await self.api.publish({"name": case.marker, "tasks": [task]})
        body = {"type": "START", "workflow": case.marker}
        command = await self.api.command(f"start-{case.marker}", body)
        outcome = await self.api.outcome(command)
        return int(outcome["result_instance_id"])

    async def _kill(
        self, case: Case, instance: int, partition: int
    ) -> tuple[frozenset[str], float, str]:
        """Kill at the case's moment, of the first attempt that others' kills let come so far.

        Return the jobs that were alive, the moment, and what was killed.
        """
        while True:
            is_over = not await self._moment(case, instance)
            live, at, killed = await self._hurt(case, instance, partition)
            if killed or is_over or await self.rows.state(instance) in _FINAL:
                return live, at, killed

    async def _moment(self, case: Case, instance: int) -> bool:
        """Return when the kill is due; False: the run has ended before."""
        asked = time.monotonic()
        while not self._has_come(case):
            await asyncio.sleep(_LOOK_S)
            if time.monotonic() - asked > 1.0:
                asked = time.monotonic()
                if await self.rows.state(instance) in _FINAL:
                    return False
        await asyncio.sleep(max(0.0, case.delay_s(self.kind.launch_s)))
        return True

    def _has_come(self, case: Case) -> bool:
        runner = self.killer.runner(case)
        if runner is None:
            return False
        return case.phase is Phase.LAUNCHED or self.kind.is_submitted(case, runner.attempt)

    async def _hurt(
        self, case: Case, instance: int, partition: int
    ) -> tuple[frozenset[str], float, str]:
        """Kill; return the jobs that were alive, the moment, and what was killed."""
        live = self.kind.watches[-1].seen(case.marker).live
        if case.target is Target.CANCEL:
            body = {"type": "STOP", "instance_id": instance}
            command = await self.api.command(f"stop-{case.marker}", body)
            at = time.monotonic()
            outcome = await self.api.outcome(command)
            return live, at, "run" if outcome["state"] == "DONE" else ""
        killed = await self.killer.kill(case, partition)
        return live, time.monotonic(), killed

    async def _ended(self, instance: int) -> str:
        deadline = time.monotonic() + self.kind.patience_s
        while (state := await self.rows.state(instance)) not in _FINAL:
            if time.monotonic() > deadline:
                return f"{state} after {self.kind.patience_s:g} s"
            await asyncio.sleep(0.2)
        return state

    async def _quiet(self, case: Case) -> list[str]:
        """Return the jobs that are left, after a while in which they may go."""
        deadline = time.monotonic() + _QUIET_S
        while True:
            for watch in self.kind.watches:
                await asyncio.to_thread(until_looked, watch)
            left = [
                f"{job} ({watch.name})"
                for watch in self.kind.watches
                for job in watch.seen(case.marker).live
            ]
            if not left or time.monotonic() > deadline:
                return left
            await asyncio.sleep(0.2)

    async def _evidence(
        self,
        case: Case,
        instance: int,
        killed: str,
        state: str,
        left: list[str],
        live: frozenset[str],
        at: float,
    ) -> Evidence:
        kind = self.kind
        seen = kind.watches[-1].seen(case.marker)
        hurt = case.target is not Target.MASTER and killed
        last = [seen.last_s[job] - at for job in live if job in seen.last_s] if hurt else []
        gone_s = round(max(0.0, *last), 2) if last else None
        effects = await asyncio.to_thread(kind.effects, case) if kind.counts else -1
        return Evidence(
            case=case,
            killed=killed,
            state=state,
            attempts=[AttemptRow(*row) for row in await self.rows.attempts(instance)],
            doubles=[
                f"{double} ({watch.name})"
                for watch in kind.watches
                for double in watch.seen(case.marker).doubles
            ],
            left=left,
            effects=effects,
            received=kind.received(case),
            declares=kind.declares,
            may_stay_lost=kind.may_stay_lost,
            gone_s=gone_s,
            alone=not any(
                at - _RECOVERY_S <= moment <= at + (gone_s or 0.0) and other != case.id
                for moment, other in self.killer.shared
            ),
            bounds_cancel=kind.bounds_cancel,
            swallows=kind.swallows,
        )
