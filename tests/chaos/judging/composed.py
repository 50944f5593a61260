"""What holds more than one instance together: nested runs, shared slots, overlap, backfills."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.chaos.judging.evidence import FINAL_INSTANCE, FINAL_TASK, Attempt, Evidence, Instance
from tests.chaos.judging.verdict import Kind, Offence

# "queue" and its kin let one run be active at a time; what replaces another one waits for its end.
_ALONE = frozenset({"queue", "queue_by_priority", "queue_latest", "skip_new", "replace"})
_ENDED_BADLY = frozenset({"FAILED", "STOPPED"})


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield offences of instances against one another."""
    yield from _children(evidence)
    yield from _slots(evidence)
    yield from _overlaps(evidence)
    yield from _backfills(evidence)


# -- nested runs ------------------------------------------------------------------------------


def _children(evidence: Evidence) -> Iterator[Offence]:
    """A task that starts instances has each once, and ends as they end."""
    for (instance, name), attempts in evidence.attempts_of.items():
        task = evidence.instances[instance].tasks.get(name)
        if task is None or task.children is None:
            continue
        children = [child for a in attempts for child in evidence.children_of.get(a.id, ())]
        yield from _each_once(attempts[-1], children)
        if attempts[-1].state == "SUCCEEDED":
            yield from _success(evidence, attempts[-1], children, task.children)
        elif attempts[-1].state == "FAILED" and not any(
            child.state in _ENDED_BADLY for child in children
        ):
            states = [child.state for child in children]
            yield _of(attempts[-1], Kind.ILLEGAL, "failure of a child", f"its children: {states}")


def _each_once(attempt: Attempt, children: Sequence[Instance]) -> Iterator[Offence]:
    indices = Counter(child.parent[1] for child in children if child.parent is not None)
    for index, count in indices.items():
        if count > 1:
            text = f"{count} instances were started for its item {index}"
            yield _of(attempt, Kind.DUPLICATE, "one child for an item", text)


def _success(
    evidence: Evidence, attempt: Attempt, children: Sequence[Instance], wanted: int
) -> Iterator[Offence]:
    well = [child for child in children if child.state == "SUCCEEDED"]
    if len(well) != wanted:
        text = f"SUCCEEDED, but {len(well)} of its {wanted} children did"
        yield _of(attempt, Kind.LOST, "success of all children", text)
    end_s = _end_of_attempt(evidence, attempt)
    for child in well:
        ended_s = _ends(evidence, child)
        if end_s is not None and ended_s and min(ended_s) > end_s:
            text = f"ended before its child {child.id} did"
            yield _of(attempt, Kind.ILLEGAL, "children end first", text)


def _end_of_attempt(evidence: Evidence, attempt: Attempt) -> float | None:
    return next(
        (
            change.at_s
            for change in evidence.changes_of.get(attempt.instance, ())
            if (change.task, change.attempt) == (attempt.task, attempt.number)
            and change.state in FINAL_TASK
        ),
        None,
    )


def _ends(evidence: Evidence, instance: Instance) -> list[float]:
    return [
        change.at_s
        for change in evidence.changes_of.get(instance.id, ())
        if change.task is None and change.state in FINAL_INSTANCE
    ]


# -- slots ------------------------------------------------------------------------------------


def _slots(evidence: Evidence) -> Iterator[Offence]:
    """By the tasks' own clocks: of one group never more run than it has slots."""
    frozen = {pid for fault in evidence.faults for pid in fault.frozen_pids}
    moments: dict[str, list[tuple[int, int, Attempt]]] = {}
    for run in evidence.runs:
        attempt = evidence.attempt_by_id.get(run.start.task_instance_id)
        task = None if attempt is None else evidence.task_of(attempt)
        if attempt is None or task is None or task.group is None or run.start.pid in frozen:
            continue
        end_s = _end_of_attempt(evidence, attempt)
        recorded_ns = run.start.boot_ns if end_s is None else int(end_s * 1e9)
        end_ns = recorded_ns if run.end is None else run.end.boot_ns
        some = moments.setdefault(task.group, [])
        # Of one moment the ends come first.
        some += [(run.start.boot_ns, 1, attempt), (max(end_ns, run.start.boot_ns), 0, attempt)]
    for group, found in moments.items():
        running = 0
        for _, is_start, attempt in sorted(found, key=lambda moment: moment[:2]):
            running += 1 if is_start else -1
            if running > evidence.slots[group]:
                text = f"the {running}. to run at once, but {group} has {evidence.slots[group]}"
                yield _of(attempt, Kind.ILLEGAL, "slots of a group", text)


# -- runs of one workflow ---------------------------------------------------------------------


def _overlaps(evidence: Evidence) -> Iterator[Offence]:
    """A workflow whose runs must not overlap has one at a time."""
    names = {one.workflow for one in evidence.instances.values() if one.overlap in _ALONE}
    for name in names:
        spans = sorted(
            span
            for one in evidence.instances.values()
            if one.workflow == name and (span := _active(evidence, one)) is not None
        )
        for (_, end_s, first), (start_s, _, second) in pairwise(spans):
            if start_s < end_s:
                text = f"active at {start_s:.3f} s, when {first} still was, until {end_s:.3f} s"
                yield Offence(Kind.ILLEGAL, "overlapping runs of a workflow", text, second)


def _active(evidence: Evidence, instance: Instance) -> tuple[float, float, int] | None:
    """From its first start to its end, and its id; None if it never was active."""
    own = [c for c in evidence.changes_of.get(instance.id, ()) if c.task is None]
    starts = [change.at_s for change in own if change.state not in ("QUEUED", *FINAL_INSTANCE)]
    ends = [change.at_s for change in own if change.state in FINAL_INSTANCE]
    if not starts or not ends:
        return None
    return min(starts), max(ends), instance.id


# -- backfills --------------------------------------------------------------------------------


def _backfills(evidence: Evidence) -> Iterator[Offence]:
    """Every date of a backfill has run once, and no more at a time than asked for."""
    stored = {one.command_id for one in evidence.backfills}
    for command in evidence.commands:
        if command.type == "BACKFILL" and command.state == "DONE" and command.id not in stored:
            text = f"command {command.id} is DONE without its backfill"
            yield Offence(Kind.LOST, "backfill of a command", text)
    for backfill in evidence.backfills:
        if backfill.state not in ("SUCCEEDED", "FAILED", "CANCELLED"):
            text = f"backfill {backfill.id} is still {backfill.state}"
            yield Offence(Kind.STUCK, "open backfill", text)
        runs = [
            one
            for one in evidence.instances.values()
            if one.backfill is not None and one.backfill[0] == backfill.id and one.parent is None
        ]
        counts = Counter(one.backfill[1] for one in runs if one.backfill is not None)
        for date, state in backfill.dates.items():
            if counts[date] != 1 and state == "SUCCEEDED":
                text = f"backfill {backfill.id} has {counts[date]} runs of {date}"
                yield Offence(Kind.DUPLICATE, "one run for a date", text)
        spans = [span for one in runs if (span := _active(evidence, one)) is not None]
        for start_s, _, instance in spans:
            at_once = sum(a <= start_s < b for a, b, _ in spans)
            if at_once > backfill.parallel:
                text = f"{at_once} runs of backfill {backfill.id}, {backfill.parallel} allowed"
                yield Offence(Kind.ILLEGAL, "window of a backfill", text, instance)


def _of(attempt: Attempt, kind: Kind, rule: str, text: str) -> Offence:
    return Offence(kind, rule, text, attempt.instance, attempt.task, attempt.number)
