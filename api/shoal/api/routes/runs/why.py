"""Why is it not running? One answer that walks through all layers."""

from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.runs import explanation
from shoal.api.routes.runs.instances import InstanceId
from shoal.api.routes.runs.tasks import TaskInstanceId
from shoal.api.schemas.runs.why import FindingOut, WhyOut
from shoal.api.services import BaselinesDep, ClusterDep, StoreDep
from shoal.api.web.answers import legible
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission

router = strict_router("instances")


@router.get(
    "/instances/{instance_id}/why",
    summary="Explain what an instance waits for",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def explain_instance(
    store: StoreDep, cluster: ClusterDep, baselines: BaselinesDep, instance_id: InstanceId
) -> WhyOut:
    """What every layer says: overlap, partition, its open tasks and what each of them waits for."""
    with legible("workflow instance", instance_id):
        facts, findings = await explanation.of_instance(store, cluster, baselines, instance_id)
    return WhyOut(
        instance_id=facts.instance.id,
        task_instance_id=None,
        task=None,
        project=facts.instance.project,
        workflow=facts.instance.workflow,
        state=facts.instance.state.value,
        findings=[FindingOut.model_validate(finding) for finding in findings],
    )


@router.get(
    "/task-instances/{task_instance_id}/why",
    summary="Explain what a task instance waits for",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def explain_task_instance(
    store: StoreDep, cluster: ClusterDep, task_instance_id: TaskInstanceId
) -> WhyOut:
    """What every layer says about one attempt, or why it ended as it has."""
    with legible("task instance", task_instance_id):
        facts, attempt, findings = await explanation.of_task(store, cluster, task_instance_id)
    return WhyOut(
        instance_id=facts.instance.id,
        task_instance_id=attempt.id,
        task=attempt.task,
        project=facts.instance.project,
        workflow=facts.instance.workflow,
        state=attempt.state.value,
        findings=[FindingOut.model_validate(finding) for finding in findings],
    )
