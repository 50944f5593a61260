"""The work of a CONTAINER task, in the process of its attempt.

What an earlier attempt has left is ended before anything begins. The container is removed when it
has ended, whatever way it does; the attempt is over when it is gone.
"""

from typing import Any

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.container.kind import ContainerParams
from shoal.worker.types.container.rules import Rules
from shoal.worker.types.program import placeholders_left


def run(work: Work[ContainerParams]) -> None:
    """Run the container to its end. Raises WorkFailed, Cancelled."""
    with work.beginning():
        _require_rendered(work.params)
        room = _room(work)
    room.run(work, Rules.of(work.settings))


def settle(work: Work[ContainerParams]) -> None:
    """End what the attempt has left. Raises WorkFailed."""
    _room(work).settle(work, Rules.of(work.settings))


def _room(work: Work[ContainerParams]) -> Any:
    """Import what speaks to the engine, and its library, which takes a second."""
    try:
        if work.params.engine == "kubernetes":
            from shoal.worker.types.container import cluster

            return cluster
        from shoal.worker.types.container import local

        return local
    except ModuleNotFoundError as error:
        extra = "kubernetes" if work.params.engine == "kubernetes" else "docker"
        text = f"this worker has no Python package {error.name}: install shoal[{extra}] there"
        raise WorkFailed(text, permanent=True) from error


def _require_rendered(params: ContainerParams) -> None:
    texts = [params.image, params.user, params.memory, params.network, params.namespace]
    texts += [params.service_account, params.working_dir or ""]
    texts += [text for mount in params.mounts for text in (mount.source, mount.target)]
    if left := placeholders_left(texts):
        text = f"no parameter of the workflow fills the placeholder in {left[0]!r}"
        raise WorkFailed(text, permanent=True)
