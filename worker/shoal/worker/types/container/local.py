"""One container at an engine of this machine, from what is left of earlier ones to its end."""

import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.container.contents import environment, laid_out
from shoal.worker.types.container.engine import (
    ATTEMPT,
    ContainerEngine,
    Ending,
    EngineContainer,
    Login,
    Spec,
)
from shoal.worker.types.container.kind import INSIDE, ContainerParams, size
from shoal.worker.types.container.rules import Rules

_KILLED = 137
#: What a container whose process on the worker is dead gets between TERM and KILL.
_SETTLING_GRACE_S = 2.0
# Of the worker's grace: it must not end the process before that has removed the container.
_SHARE_OF_GRACE = 0.6
_LABELS = {
    "shoal.project": "SHOAL_PROJECT",
    "shoal.workflow": "SHOAL_WORKFLOW",
    "shoal.task": "SHOAL_TASK",
    "shoal.task-instance": "SHOAL_TASK_INSTANCE_ID",
}


def run(work: Work[ContainerParams], rules: Rules) -> None:
    """Run the container to its end; its exit code is the task's."""
    with work.beginning():
        rules.require_mounts(work.params.mounts)
        rules.network(work.params)
        engine = ContainerEngine(work.params.engine, rules.socket(work.params.engine))
        earlier = engine.find(work.tag)
    work.log(f"shoal: {engine}")
    if earlier is not None:
        if earlier.attempt > work.attempt:
            raise WorkFailed(f"a later attempt, number {earlier.attempt}, has begun already")
        work.log(f"shoal: ending container {earlier.id}, which an earlier attempt has left")
        end(earlier, _SETTLING_GRACE_S)
    try:
        _pull(work, engine)
        spec = _spec(work, rules)
        work.require_wanted()
    except BaseException:
        work.settled()  # nothing is begun
        raise
    container = _created(work, engine, spec)
    try:
        ending = _followed(work, container, rules.grace_s * _SHARE_OF_GRACE)
    finally:
        container.remove()
        work.settled()
    work.require_wanted()
    if ending.out_of_memory:
        limit = f"its limit of {work.params.memory}" if work.params.memory else "what there was"
        text = f"the container was killed because it used more memory than {limit}"
        raise WorkFailed(f"{text}: raise `memory`, or let it use less", exit_code=_KILLED)
    if ending.code == _KILLED and work.params.memory and not ending.said:
        text = "the container was killed (SIGKILL), perhaps because it used more memory than its"
        raise WorkFailed(f"{text} limit of {work.params.memory}", exit_code=_KILLED)
    if ending.code:
        raise WorkFailed(ending.said, exit_code=ending.code)  # else the log says why


def settle(work: Work[ContainerParams], rules: Rules) -> None:
    """End the container that an attempt has left, unless a later one has made it."""
    engine = ContainerEngine(work.params.engine, rules.socket(work.params.engine))
    found = engine.find(work.tag)
    if found is not None and found.attempt <= work.attempt:
        end(found, _SETTLING_GRACE_S)
    work.settled()


def end(container: EngineContainer, grace_s: float) -> None:
    """Stop a container and remove it; return when it is gone."""
    container.stop(grace_s)
    container.remove()


def _created(work: Work[ContainerParams], engine: ContainerEngine, spec: Spec) -> EngineContainer:
    try:
        return engine.create(work.tag, spec)
    except WorkFailed as failed:
        if failed.permanent:  # refused: nothing was made
            work.settled()
        raise


def _followed(work: Work[ContainerParams], container: EngineContainer, grace_s: float) -> Ending:
    work.on_cancel(lambda: container.stop(grace_s))
    work.require_wanted()
    container.start()
    work.log(f"shoal: container {container.id} runs")
    if work.is_cancelled:
        # The callback may have come before the start, when there was nothing to stop.
        container.stop(grace_s)
    for chunk in container.output():
        work.log_bytes(chunk)
    return container.wait()


def _pull(work: Work[ContainerParams], engine: ContainerEngine) -> None:
    params = work.params
    if params.pull != "always" and engine.has(params.image):
        return
    if params.pull == "never":
        text = f"the engine has no image {params.image}, and `pull: never` fetches none"
        raise WorkFailed(f"{text}: is its name right?", permanent=True)
    work.log(f"shoal: pulling {params.image}")
    registry = params.registry
    login = Login(registry.user, registry.password) if registry else None
    _unless_cancelled(work, lambda: engine.pull(params.image, login))


def _unless_cancelled(work: Work[ContainerParams], do: Callable[[], None]) -> None:
    """Do what may take long, and leave it alone when the attempt is to end. Raises Cancelled."""
    over: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def doing() -> None:
        try:
            do()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            over.put(error)
        else:
            over.put(None)

    threading.Thread(target=doing, name="pulling", daemon=True).start()
    work.on_cancel(lambda: over.put(None))
    if error := over.get():
        raise error
    work.require_wanted()


def _spec(work: Work[ContainerParams], rules: Rules) -> Spec:
    params = work.params
    binds = laid_out(work)
    mounted = {mount.target: mount for mount in params.mounts}
    readable = {to: Path(one.source) for to, one in mounted.items() if one.read_only}
    writable = {to: Path(one.source) for to, one in mounted.items() if not one.read_only}
    return Spec(
        image=params.image,
        command=params.command,
        arguments=params.arguments,
        environment=environment(work, f"{INSIDE}/output"),
        labels={
            ATTEMPT: str(work.attempt),
            **{label: os.environ.get(name, "") for label, name in _LABELS.items()},
        },
        network=rules.network(params),
        read_only={**readable, **binds.read_only},
        writable={**writable, **binds.writable},
        working_dir=params.working_dir,
        user=params.user,
        cpus=params.cpus,
        memory=size(params.memory) if params.memory else None,
        pids=params.pids,
        init=params.init,
    )
