"""The task type CONTAINER."""

from collections.abc import Mapping
from typing import Any

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.container.params import ContainerParams


class Container(ChildType[ContainerParams]):
    """Runs one container to its end. Killed means that it is gone, wherever it was."""

    Params = ContainerParams
    work = "shoal.worker.types.container.run:run"
    settles = True

    @classmethod
    def repeats_after_loss(cls, params: Mapping[str, Any]) -> bool:
        """See TaskKind: at an engine that other workers do not reach it may go on."""
        given = ContainerParams.model_validate(params)
        return given.idempotent or given.engine == "kubernetes"
