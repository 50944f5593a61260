"""How far running tasks are, asked of their workers over gRPC."""

from shoal.api.services import Services
from shoal.core.runs.states import TaskState
from shoal.proto.shoal_pb2 import TaskProgress
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.integration.api.fake_worker import fake_worker
from tests.integration.api.runs.attempts import first_task, set_state


async def test_running_tasks_are_asked_about_and_others_are_not(
    api: Api, services: Services, cluster: ClusterSettings
) -> None:
    run = await api.run()
    path = f"{PREFIX}/instances/{run.id}/progress"
    task = await first_task(api, run)
    async with fake_worker(services, cluster) as worker:
        worker.progress[task["id"]] = TaskProgress(
            task_instance_id=task["id"], done=12, total=40, unit="stages", label="count", at=0.5
        )
        assert (await api.client.get(path)).json() == []  # it does not run yet
        await set_state(api, run, TaskState.RUNNING, "w1")
        (shown,) = (await api.client.get(path)).json()
        assert shown == {
            "task_instance_id": task["id"],
            "done": 12.0,
            "total": 40.0,
            "unit": "stages",
            "label": "count",
            "at": "1970-01-01T00:00:00.500000Z",
        }
        worker.progress[task["id"]].ClearField("total")
        (shown,) = (await api.client.get(path)).json()
        assert shown["total"] is None
        await worker.stop()  # it is a member still, and does not answer
        assert (await api.client.get(path)).json() == []
    assert (await api.client.get(path)).json() == []


async def test_instance_has_to_exist(api: Api) -> None:
    problem_of(await api.client.get(f"{PREFIX}/instances/999999/progress"), 404, "not-found")
