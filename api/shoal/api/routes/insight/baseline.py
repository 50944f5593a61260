"""A run against what is usual for it."""

from fastapi import Response

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.insight.baselines import against_usual
from shoal.api.routes.runs.instances import InstanceId
from shoal.api.schemas.insight.baseline import BaselineOut, ComparedOut, ComparedTaskOut
from shoal.api.services import BaselinesDep, StoreDep
from shoal.api.web.answers import answer, legible
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.insight.comparison import ComparedTask

router = strict_router("insight")


@router.get(
    "/instances/{instance_id}/baseline",
    summary="Compare a run with what is usual for it",
    response_model=BaselineOut,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def get_instance_baseline(
    store: StoreDep, baselines: BaselinesDep, instance_id: InstanceId
) -> Response:
    """What the run and its tasks took and waited, beside earlier ones that started at such a time.

    Usual is what succeeded in the 60 days before the newest results: of the same weekday and hour
    if there were 20 or more, else of the same hour, else of the same weekday, else of any time.
    Tasks that made the run slower come first.
    """
    async with store.unit_of_work(read_only=True) as uow:
        with legible("workflow instance", instance_id):
            found = await against_usual(uow, baselines, instance_id, store.clock())
    run, whole, tasks = found.run, found.comparison.run, found.comparison.tasks

    def made() -> BaselineOut:
        with legible("workflow instance", instance_id):
            return BaselineOut.of_record(
                run,
                instance_id=run.id,
                of=found.of,
                late_after_at=found.expected.late_after_at,
                expected_end_at=found.expected.end_at,
                expected_by=found.expected.basis,
                run=ComparedOut.of_record(whole, usual=whole.baseline),
                tasks=[_task(one) for one in tasks],
            )

    return await answer(made, len(tasks))


def _task(one: ComparedTask) -> ComparedTaskOut:
    return ComparedTaskOut.of_record(
        one.compared,
        usual=one.compared.baseline,
        task=one.attempt.task,
        task_instance_id=one.attempt.id,
        attempt=one.attempt.attempt,
        state=one.attempt.state,
        is_critical=one.path_wait_s is not None,
        path_wait_s=one.path_wait_s,
        effect_s=one.effect_s,
    )
