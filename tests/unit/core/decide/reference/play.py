"""Play a case: its moves, then on to the end, and see that the promises hold."""

import random
from collections.abc import Sequence

from tests.unit.core.decide.reference.cases import Case, Move
from tests.unit.core.decide.reference.instances import Difference, Letter, Nested
from tests.unit.core.decide.reference.model import OPEN, Key
from tests.unit.core.decide.reference.world import World

SIGNALS = ("SUCCEED",) * 6 + ("FAIL",) * 4 + ("LOSE",) * 2 + ("RESCHEDULE",) * 3 + ("KILL",)
BAD_DAY = ("LOSE",) * 12 + ("FAIL", "SUCCEED")  # whatever runs loses its worker
LOOKS = (-1, 0.5, 2, 2, 5, 10, 1e9)  # seconds until the next look, as workers may say
VERDICTS = ("WAIT", "SUCCESS", "SUCCESS", "FAILURE", "SKIP")
REQUESTS = ("pause", "resume", "resume", "stop", "recover", "rerun", "kill", "force", "force")
STALE = ("claim", "return", "start", "end", "grant", "depend", "child")
WORKERS = ("w1", "w2")
SMALL = 3  # tasks: such an instance is asked for more
STEPS = 2_000  # more than any case needs to end


def choose(world: World, dice: random.Random, signals: Sequence[str] = SIGNALS) -> Move:
    """What happens next in ``world``: mostly what can, sometimes what should not."""
    if dice.random() < (0.2 if len(world.reference.tasks) <= SMALL else 0.1):
        return random_request(world, dice)
    roll = dice.random()
    if roll < 0.05:
        return ("takeover",)
    if roll < 0.08:
        return ("again",)
    if roll < 0.14:
        return ("stale", dice.randrange(1000), dice.choice(STALE))
    if roll < 0.25:
        return ("pass", dice.choice((1, 2, 5, 10)))
    likely = ["claim"] * len(world.queue)
    likely += ["start"] * len(world.in_state("CLAIMED"))
    likely += ["end"] * len(held_by_workers(world))
    likely += ["depend"] * len(waiting(world))
    likely += ["read"] * (2 * len(world.nested.with_letters()))
    likely += ["obey"] * (2 * len(world.nested.with_requests()))
    likely += ["live"] * len(lively(world))
    likely += ["change sides"] * bool(world.nested.all)
    likely += ["grant"] * len(blocked(world))
    if not likely:
        if world.wakes and dice.random() < 0.7:
            return ("pass", dice.choice((2, 5, 10)))
        return random_request(world, dice)
    what = dice.choice(likely)
    if what == "claim":
        return (what, dice.randrange(100), dice.choice(WORKERS))
    pick = dice.randrange(100)
    if what == "start" and pick < 15:
        return ("return", pick)
    if what == "end":
        return (what, pick, dice.choice(signals), dice.choice(LOOKS))
    if what == "depend":
        return (what, pick, dice.choice(VERDICTS))
    if what in ("obey", "live"):
        return (what, pick, dice.randrange(420))
    return (what, pick)


def held_by_workers(world: World) -> list[Key]:
    """Attempts that a worker works on."""
    return [key for key in world.in_state("CLAIMED", "RUNNING") if world.stored[key].worker]


def blocked(world: World) -> list[Key]:
    """Attempts that wait for a slot and have asked for it."""
    return [key for key in world.in_state("BLOCKED") if key in world.slots]


def waiting(world: World) -> list[Key]:
    """DEPENDENT tasks whose runs are looked for."""
    dependent = [k for k in world.in_state("RUNNING") if world.reference.kind(k[0]) == "DEPENDENT"]
    return [key for key in dependent if key in world.watched]


def lively(world: World) -> list[int]:
    """Nested instances that may do something, for tasks that wait for them."""
    return world.nested.lively(world.in_state("RUNNING", "PAUSED"))


def random_request(world: World, dice: random.Random) -> Move:
    """Something that somebody asks for, allowed or not."""
    if not world.reference.admitted and dice.random() < 0.7:
        return ("request", "admit")
    kind = dice.choice(REQUESTS)
    if world.run.state in ("PAUSED", "STOPPED") and dice.random() < 0.5:
        kind = "resume"
    if world.run.state == "FAILED" and dice.random() < 0.5:
        kind = "recover"
    tasks = list(world.reference.tasks)
    match kind:
        case "kill" | "force":
            wanted = world.in_state("FAILED", "KILLED", "LOST") if kind == "force" else []
            named = [task for task, _ in wanted] if wanted and dice.random() < 0.7 else tasks
            return ("request", kind, dice.choice([*named, "nobody"]))
        case "rerun":
            mode = dice.choice(("only", "upstream", "downstream"))
            named = dice.sample(tasks, min(len(tasks), dice.choice((1, 1, 2, 3))))
            return ("request", kind, mode, *named)
    return ("request", kind)


def play(world: World, move: Move) -> None:
    """Let one move happen. One that is not possible (in a case cut down) does nothing."""
    match move:
        case ("request", name, *details):
            world.request(name, *details)
        case ("takeover",):
            world.take_over()
        case ("again",):
            world.again()
        case ("pass", seconds):
            world.pass_time(seconds)
        case ("stale", pick, what):
            stale(world, pick, what)
        case ("claim", pick, worker):
            if world.queue:
                world.claim(sorted(world.queue)[pick % len(world.queue)], worker)
        case ("start", pick):
            if claimed := world.in_state("CLAIMED"):
                key = claimed[pick % len(claimed)]
                world.start(key, world.stored[key].worker or "")
        case ("return", pick):
            if claimed := world.in_state("CLAIMED"):
                key = claimed[pick % len(claimed)]
                world.requeue(key, world.stored[key].worker or "")
        case ("grant", pick):
            if asking := blocked(world):
                world.grant(asking[pick % len(asking)])
        case ("end", pick, signal, again):
            if held := held_by_workers(world):
                end(world, held[pick % len(held)], signal, again)
        case ("depend", pick, verdict):
            if found := waiting(world):
                world.depend(found[pick % len(found)], verdict)
        case ("read", pick):
            if writers := world.nested.with_letters():
                world.read_letter(writers[pick % len(writers)])
        case ("obey", pick, outcome):
            if asked := world.nested.with_requests():
                world.nested.all[asked[pick % len(asked)]].obey(outcome)
        case ("change sides", pick):
            if everybody := [*world.nested.all.values()]:
                everybody[pick % len(everybody)].change_sides()
        case ("live", pick, outcome):
            if living := lively(world):
                world.nested.all[living[pick % len(living)]].live(outcome)
        case _:
            raise ValueError(f"no such move: {move}")


def end(world: World, key: Key, signal: str, again: float = 0) -> None:
    """A worker's attempt ends. Nobody is KILLED who was not told to die."""
    if signal == "KILL" and key not in world.kills:
        signal = "SUCCEED"
    world.end(key, signal, None if signal == "LOSE" else world.stored[key].worker, again)


def stale(world: World, pick: int, what: str) -> None:
    """A message of or for any attempt that ever was, from anybody."""
    key = sorted(world.stored)[pick % len(world.stored)]
    worker = WORKERS[pick % 2]
    if world.stored[key].state in ("CLAIMED", "RUNNING"):
        worker = "somebody else"
    match what:
        case "claim":
            if key not in world.queue:
                world.claim(key, worker)
        case "return":
            world.requeue(key, world.stored[key].worker or worker, late=True)
        case "start":
            world.start(key, worker)
        case "end":
            signals = ("SUCCEED", "FAIL", "KILL", "LOSE", "RESCHEDULE")
            world.end(key, signals[pick % 5], worker, LOOKS[pick % len(LOOKS)])
        case "grant":
            if world.stored[key].state != "BLOCKED":
                world.grant(key)
        case "depend":
            if world.stored[key].state != "RUNNING":
                world.depend(key, VERDICTS[pick % 5])
        case "child":
            if world.stored[key].state not in ("RUNNING", "PAUSED"):
                world.child(key, 0, Letter(key, "STOPPED", -1, refused=False), None)


def run_to_the_end(world: World) -> None:
    """Let all go well from here, as far as it can: nothing may hang."""
    for _ in range(STEPS):
        if not go_on(world):
            break
    else:
        raise Difference("it goes on for ever")
    state = world.run.state
    if state not in ("SUCCEEDED", "FAILED", "STOPPED"):
        raise Difference(f"stuck in {state}")
    if left := world.nested.left_alone():
        raise Difference(f"{state}, and nested instances go on: {left}")
    if open_ones := world.in_state(*OPEN):
        raise Difference(f"{state} with {open_ones}")
    for (task, number), attempt in world.stored.items():
        if not attempt.finished:
            raise Difference(f"attempt {number} of {task} was never ended")
        if attempt.state == "SKIPPED" and not (attempt.skip_cause and attempt.reason):
            raise Difference(f"attempt {number} of {task} was skipped without a reason")
        theirs = world.reference.tries[task][number - 1].state
        if attempt.state != theirs:
            raise Difference(f"attempt {number} of {task}: {attempt.state}, reference: {theirs}")


def go_on(world: World) -> bool:
    """Do whatever can be done next. Returns whether there was anything."""
    if world.run.state == "PAUSED":
        world.request("resume")
    elif not world.reference.admitted and world.run.state == "QUEUED":
        world.request("admit")
    elif world.kills:
        end(world, min(world.kills), "KILL")
    elif world.queue:
        world.claim(min(world.queue), "w1")
    elif asking := blocked(world):
        world.grant(asking[0])
    elif claimed := world.in_state("CLAIMED"):
        world.start(claimed[0], world.stored[claimed[0]].worker or "")
    elif running := held_by_workers(world):
        end(world, running[0], "FAIL" if running[0][0] in world.case.failing else "SUCCEED")
    elif dependent := waiting(world):
        failing = dependent[0][0] in world.case.failing
        world.depend(dependent[0], "FAILURE" if failing else "SUCCESS")
    elif not nested_go_on(world):
        return world_waits(world)
    return True


def nested_go_on(world: World) -> bool:
    """As ``go_on``, for the nested instances: they work unless somebody wanted them to rest."""
    nested = world.nested
    if writers := nested.with_letters():
        world.read_letter(writers[0])
    elif quarantined := nested.aside():
        nested.all[quarantined[0]].change_sides()
    elif asked := nested.with_requests():
        nested.all[asked[0]].obey(0)
    elif living := [i for i in lively(world) if wants_to_go_on(nested.all[i])]:
        nested.all[living[0]].live(0)
    else:
        return False
    return True


def wants_to_go_on(nested: Nested) -> bool:
    """Whether it does something: what rests only if no task has asked for that."""
    rests = nested.state in ("PAUSED", "STOPPED")
    return nested.state != "FAILED" and (nested.own_will or not rests)


def world_waits(world: World) -> bool:
    """Let time go by if somebody waits for that."""
    if world.wakes:
        world.pass_time(max(0.0, min(world.wakes) - world.now))
        return True
    return False


def replay(case: Case) -> World:
    """Play a whole case. Raises Difference."""
    world = World(case)
    for move in case.moves:
        play(world, move)
    run_to_the_end(world)
    return world
