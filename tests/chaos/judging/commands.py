"""Nothing accepted is lost, nothing accepted happens twice, and everything asked for happens."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.judging.evidence import FINAL_INSTANCE, Command, Evidence
from tests.chaos.judging.verdict import Kind, Offence

_CREATES = frozenset({"START", "RERUN"})
# What the instance is, right after a command was carried out (it may have ended at once).
_EFFECTS = {
    "PAUSE": frozenset({"PAUSING", "PAUSED", "SUCCEEDED", "FAILED"}),
    "STOP": frozenset({"STOPPING", "STOPPED", "SUCCEEDED", "FAILED"}),
    "RESUME": frozenset({"RUNNING", "SUCCEEDED", "FAILED"}),
}
_HOLDS = frozenset({"PAUSE", "STOP"})
_CONTINUES = frozenset({"RESUME", "RECOVER"})


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield what is wrong with commands and the existence of instances."""
    yield from _acknowledged(evidence)
    yield from _outcomes(evidence)
    yield from _origins(evidence)
    yield from _effects(evidence)
    yield from _obedience(evidence)
    yield from _fire_times(evidence)


def stop_delays(evidence: Evidence) -> list[float]:
    """Return how long each stop took to end its instance, in seconds, if no fault was near."""
    delays = []
    for command in evidence.commands:
        if (command.type, command.state) != ("STOP", "DONE") or command.handled_s is None:
            continue
        ends = [
            change.at_s
            for change in evidence.changes_of.get(command.instance_id or 0, ())
            if change.task is None
            and change.state in FINAL_INSTANCE
            and change.at_s >= command.handled_s
        ]
        if ends and not _disturbed(evidence, command.handled_s, ends[0]):
            delays.append(ends[0] - command.handled_s)
    return delays


def _disturbed(evidence: Evidence, from_s: float, until_s: float) -> bool:
    return any(
        fault.began_s <= until_s and from_s <= (fault.recovered_s or float("inf"))
        for fault in evidence.faults
    )


def _acknowledged(evidence: Evidence) -> Iterator[Offence]:
    by_id = {command.id: command for command in evidence.commands}
    for asked in evidence.asked:
        if asked.refused is not None:
            text = f"{asked.type} {asked.key} was refused: {asked.refused}"
            yield Offence(Kind.ILLEGAL, "valid request refused", text, asked.instance_id)
        if len(asked.ids) > 1:
            text = f"key {asked.key} was acknowledged as commands {sorted(asked.ids)}"
            yield Offence(Kind.ILLEGAL, "one key, one command", text, asked.instance_id)
        for command_id in asked.ids:
            stored = by_id.get(command_id)
            if stored is None or (stored.key, stored.type) != (asked.key, asked.type):
                text = f"{asked.type} {asked.key}, acknowledged as command {command_id}, is gone"
                yield Offence(Kind.LOST, "acknowledged command", text, asked.instance_id)
    for key, count in Counter(command.key for command in evidence.commands).items():
        if count > 1:
            yield Offence(Kind.ILLEGAL, "one key, one command", f"{count} commands have {key}")


def _outcomes(evidence: Evidence) -> Iterator[Offence]:
    for command in evidence.commands:
        if command.state == "PENDING":
            text = f"command {command.id} ({command.type}) was never carried out or refused"
            yield Offence(Kind.STUCK, "pending command", text, command.instance_id)
        elif command.state == "DONE" and command.type in _CREATES:
            created = evidence.instances.get(command.result_instance_id or 0)
            if created is None or created.command_id != command.id:
                text = f"command {command.id} ({command.type}) is DONE without its instance"
                yield Offence(Kind.LOST, "instance of a command", text, command.result_instance_id)
    for instance in evidence.instances.values():
        if instance.state not in FINAL_INSTANCE:
            text = f"still {instance.state} at the end"
            yield Offence(Kind.STUCK, "open instance", text, instance.id)


def _origins(evidence: Evidence) -> Iterator[Offence]:
    """Every instance comes from a command of its own."""
    by_id = {command.id: command for command in evidence.commands}
    seen: set[int] = set()
    for instance in evidence.instances.values():
        origin = by_id.get(instance.command_id)
        if origin is None or origin.type not in _CREATES or origin.state != "DONE":
            text = f"nobody asked for it: command {instance.command_id} is {origin}"
            yield Offence(Kind.ILLEGAL, "instance without command", text, instance.id)
        if instance.command_id in seen:
            text = f"command {instance.command_id} has made another instance already"
            yield Offence(Kind.ILLEGAL, "one command, one instance", text, instance.id)
        seen.add(instance.command_id)


def _effects(evidence: Evidence) -> Iterator[Offence]:
    """A command that is DONE has changed its instance in the transaction that says so."""
    for instance, commands in evidence.commands_of.items():
        done = [c for c in commands if c.state == "DONE"]
        together = Counter(c.handled_s for c in done)
        changes = evidence.changes_of.get(instance or 0, ())
        for command in done:
            expected = _EFFECTS.get(command.type)
            # Two at once may cancel each other out; what a parent asks for may be so already.
            if expected is None or together[command.handled_s] > 1 or command.by_parent:
                continue
            if not any(
                c.task is None and c.at_s == command.handled_s and c.state in expected
                for c in changes
            ):
                text = f"command {command.id} ({command.type}) is DONE, but changed nothing"
                yield Offence(Kind.LOST, "effect of a command", text, instance)


def _obedience(evidence: Evidence) -> Iterator[Offence]:
    """Nothing is queued or started between a pause or stop and what lets the instance go on."""
    for instance, commands in evidence.commands_of.items():
        for held_s, until_s, command in _held(commands):
            for change in evidence.changes_of.get(instance or 0, ()):
                if change.state in ("QUEUED", "CLAIMED") and held_s < change.at_s < until_s:
                    text = f"became {change.state} after command {command.id} ({command.type})"
                    yield Offence(
                        Kind.ILLEGAL,
                        "held instance went on",
                        text,
                        instance,
                        change.task,
                        change.attempt,
                    )


def _held(commands: Sequence[Command]) -> Iterator[tuple[float, float, Command]]:
    """Yield from when until when each PAUSE or STOP was in force."""
    done = sorted(
        (c.handled_s, c.id, c) for c in commands if c.state == "DONE" and c.handled_s is not None
    )
    for position, (held_s, _, command) in enumerate(done):
        if command.type in _HOLDS:
            later = [at_s for at_s, _, c in done[position:] if c.type in _CONTINUES]
            yield held_s, min(later, default=float("inf")), command


def _fire_times(evidence: Evidence) -> Iterator[Offence]:
    """A schedule starts one instance for one fire time."""
    fired = Counter(
        (command.schedule_id, command.logical_time)
        for command in evidence.commands
        if command.schedule_id is not None
    )
    for (schedule, fire_time), count in fired.items():
        if count > 1:
            text = f"schedule {schedule} fired {count} times for {fire_time}"
            yield Offence(Kind.ILLEGAL, "one instance per fire time", text)
