"""The plan of a run: which faults, when, one or two at a time; all of it follows from the seed."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.cluster.cluster import Cluster, NotWhole
from tests.chaos.faults.catalogue import Maker
from tests.chaos.faults.fault import Fault, Skipped
from tests.chaos.observer import NotVisible, View
from tests.chaos.records import FaultRecord, now_s

WHOLE_S = 120.0  # far beyond every target: who needs longer is stuck
PROGRESS_S = 60.0
_DOUBLE = 0.2  # how often two faults are injected together
_MOST_PAUSE_S = 2.0  # of undisturbed work before a fault
_LOOK_S = 0.2

Tell = Callable[[str], None]


@dataclass
class Episode:
    """One or two faults at a time, after a pause."""

    pause_s: float
    faults: Sequence[Fault]
    apart_s: float = 0.0  # between the beginnings of two


def draw(seed: int, count: int, makers: Mapping[str, Maker]) -> list[Episode]:
    """Return episodes with ``count`` faults in all: every kind as often as the others."""
    dice = random.Random(seed)
    names: list[str] = []
    while len(names) < count:
        names += dice.sample(sorted(makers), len(makers))
    faults = [makers[name](random.Random(dice.random())) for name in names[:count]]
    episodes = []
    while faults:
        some = [faults.pop(0)]
        if faults and dice.random() < _DOUBLE and _may_join(some[0], faults[0]):
            some.append(faults.pop(0))
        episodes.append(
            Episode(dice.uniform(0.0, _MOST_PAUSE_S), some, dice.uniform(0.0, _MOST_PAUSE_S))
        )
    return episodes


def _may_join(one: Fault, other: Fault) -> bool:
    return not (one.alone or other.alone or one.hurts & other.hurts)


@dataclass
class Outcome:
    """What became of a plan."""

    records: list[FaultRecord] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)  # why the cluster did not recover


@dataclass
class _Injected:
    fault: Fault
    began_s: float
    lifted_s: float = 0.0
    healed_s: float = 0.0


async def carry_out(cluster: Cluster, episodes: Sequence[Episode], tell: Tell) -> Outcome:
    """Inject everything. Ends early if the cluster does not become whole again."""
    outcome = Outcome()
    for number, episode in enumerate(episodes, 1):
        try:
            view = await cluster.until_whole(WHOLE_S)
            await asyncio.sleep(episode.pause_s)
            records = await _inject(cluster, episode, view, outcome)
        except NotWhole as error:
            outcome.trouble.append(f"episode {number}: {error}")
            tell(outcome.trouble[-1])
            return outcome
        outcome.records += records
        for record in records:
            tell(f"{number}/{len(episodes)} {_line(record)}")
        if any(record.recovered_s is None for record in records):
            outcome.trouble.append(f"episode {number}: not whole again within {WHOLE_S:g} s")
            return outcome
    return outcome


async def _inject(
    cluster: Cluster, episode: Episode, before: View, outcome: Outcome
) -> list[FaultRecord]:
    done = await asyncio.gather(
        *(
            _one(cluster, fault, before, position * episode.apart_s, outcome)
            for position, fault in enumerate(episode.faults)
        )
    )
    injected = [one for one in done if one is not None]
    after, recovered_s = before, None
    try:
        after = await cluster.until_whole(WHOLE_S)
        recovered_s = now_s()
        await _progress(cluster, after)
    except NotWhole as error:
        outcome.trouble.append(str(error))
        recovered_s = None
    alone = len(injected) == 1
    # Of two together, neither has ended before both have.
    healed_s = max((one.healed_s for one in injected), default=0.0)
    return [_record(one, after, healed_s, recovered_s, alone) for one in injected]


async def _one(
    cluster: Cluster, fault: Fault, before: View, delay_s: float, outcome: Outcome
) -> _Injected | None:
    """Begin, hold and heal one fault; heal it whatever happens."""
    await asyncio.sleep(delay_s)
    fault.before = before
    injected = _Injected(fault, now_s())
    try:
        try:
            try:
                await fault.begin(cluster)
            except NotVisible as why:  # another fault hides what this one has to see
                raise Skipped(str(why)) from why
            await fault.hold(cluster)
        finally:
            injected.lifted_s = now_s()
            if fault.target:
                await fault.heal(cluster)
    except Skipped as why:
        outcome.skipped.append(f"{fault.name}: {why}")
        return None
    except (NotWhole, TimeoutError) as error:  # what it waited for did not come
        outcome.trouble.append(f"{fault.name}: {error or 'waited in vain'}")
    injected.healed_s = now_s()
    return injected


def _record(
    one: _Injected, after: View, healed_s: float, recovered_s: float | None, alone: bool
) -> FaultRecord:
    fault = one.fault
    bit, evidence = fault.bit(after)
    return FaultRecord(
        fault.name,
        fault.target,
        one.began_s,
        healed_s,
        recovered_s,
        bit,
        evidence if alone else f"{evidence}; together with another fault",
        # Of two faults at once neither figure is a takeover's.
        taken_over_s=fault.taken_over_s if alone else None,
        frozen_pids=fault.frozen_pids,
        alone=alone,
        lifted_s=one.lifted_s,
        costs_workers=fault.costs_workers,
        spoils_disk=fault.spoils_disk,
    )


async def _progress(cluster: Cluster, since: View) -> None:
    """Return when something new has happened. Raises NotWhole: whole, but nothing moves."""
    deadline = now_s() + PROGRESS_S
    while (await cluster.until_whole(WHOLE_S)).events <= since.events:
        if now_s() > deadline:
            raise NotWhole(f"no event within {PROGRESS_S:g} s although everybody is there")
        await asyncio.sleep(_LOOK_S)


def _line(record: FaultRecord) -> str:
    took = "NEVER" if record.recovery_s is None else f"{record.recovery_s:.1f} s"
    bit = "bit" if record.bit else "did not bite"
    return f"{record.name} {record.target}: {bit}, whole again after {took}; {record.evidence}"
