"""How far the running tasks of an instance are."""

from datetime import UTC, datetime

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.runs.progress import MOST
from shoal.api.routes.runs.instances import InstanceId
from shoal.api.schemas.runs.instances import ProgressOut
from shoal.api.services import ProgressDep, StoreDep
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.proto.shoal_pb2 import TaskProgress

router = strict_router("instances")


@router.get(
    "/instances/{instance_id}/progress",
    summary="Show how far the running tasks are",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_progress(
    store: StoreDep, progress_reader: ProgressDep, instance_id: InstanceId
) -> list[ProgressOut]:
    """What the work of running tasks says of itself, as far as it says anything.

    At most 1,000 tasks. A worker that does not answer within seconds is left out.
    """
    async with store.unit_of_work(read_only=True) as uow:
        tasks = await uow.tasks.running(instance_id, MOST)
    return [_shown(one) for one in await progress_reader.read(tasks)]


def _shown(progress: TaskProgress) -> ProgressOut:
    return ProgressOut(
        task_instance_id=progress.task_instance_id,
        done=progress.done,
        total=progress.total if progress.HasField("total") else None,
        unit=progress.unit,
        label=progress.label,
        at=datetime.fromtimestamp(progress.at, UTC),
    )
