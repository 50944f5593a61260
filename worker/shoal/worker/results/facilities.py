"""What all attempts of a worker share: its folders and its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shoal.proto import shoal_pb2 as pb
from shoal.worker.home.resources import ResourceCache
from shoal.worker.home.spool import Spool
from shoal.worker.logs.files import LogStore, log_workflow
from shoal.worker.logs.limit import LogLimit
from shoal.worker.results.publications import Publisher


@dataclass(frozen=True)
class Facilities:
    """What all attempts of this worker share."""

    worker_id: str
    group: str
    work_root: Path
    store: LogStore
    log_limit: LogLimit
    spool: Spool
    worker_env: Mapping[str, str]
    env_pass: Sequence[str]
    kill_grace_s: float
    resources: ResourceCache
    publisher: Publisher
    type_settings: Mapping[str, str]  # see TaskContext.settings

    def log_path(self, payload: pb.Payload) -> Path:
        """Return where the log of an attempt lies."""
        return self.store.path(
            log_workflow(payload.cluster, payload.project, payload.workflow),
            payload.workflow_instance_id,
            payload.task_instance_id,
        )
