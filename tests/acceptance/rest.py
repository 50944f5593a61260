"""A few lines over plain HTTP, so that these tests judge the API and not our own client."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tests.support.waiting import DEADLINE_S

FINISHED = ("SUCCEEDED", "FAILED", "STOPPED")


class Rest:
    """Speak to a cluster as any program would."""

    def __init__(self, url: str, token: str) -> None:
        self.http = httpx.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=2 * DEADLINE_S,
            trust_env=False,
        )

    def close(self) -> None:
        self.http.close()

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Create or replace what stands at ``path``."""
        answer = self.http.put(path, json=body)
        assert answer.status_code in (200, 201), answer.text

    def publish(self, name: str, tasks: Mapping[str, Mapping[str, Any]], **fields: Any) -> None:
        """Publish a workflow of SHELL tasks: ``{"b": {"script": "...", "depends_on": ["a"]}}``."""
        body = {
            "name": name,
            "tasks": [
                {
                    "name": task,
                    "type": "SHELL",
                    "params": {"script": rest.pop("script", "true")},
                    **rest,
                }
                for task, rest in ((t, dict(f)) for t, f in tasks.items())
            ],
            **fields,
        }
        self.put(f"/projects/default/workflows/{name}", body)

    def command(self, type_: str, **fields: Any) -> Any:
        """Send a command and return its outcome."""
        answer = self.http.post("/commands", json={"type": type_, **fields})
        assert answer.status_code == 202, answer.text
        return self.outcome(answer.json()["id"])

    def outcome(self, command_id: int) -> Any:
        """Wait until a command is carried out or refused."""
        for _ in range(4):
            command = self.get(f"/commands/{command_id}", wait=30)
            if command["state"] != "PENDING":
                return command
        raise AssertionError(f"nobody looked at command {command_id}")

    def start(self, workflow: str, **fields: Any) -> int:
        """Start a workflow and return the instance's id."""
        outcome = self.command("START", project="default", workflow=workflow, **fields)
        assert outcome["state"] == "DONE", outcome
        return int(outcome["result_instance_id"])

    def instance(self, instance_id: int, **query: Any) -> Any:
        return self.get(f"/instances/{instance_id}", **query)

    def tasks(self, instance_id: int) -> dict[str, Any]:
        """The newest attempt of each task by name."""
        return {task["task"]: task for task in self.instance(instance_id)["tasks"]}

    def wait_for(self, instance_id: int, *, timeout_s: float = 2 * DEADLINE_S) -> Any:
        """Wait until an instance has ended."""
        return self.until(
            lambda: self.instance(instance_id),
            lambda found: found["state"] in FINISHED,
            timeout_s=timeout_s,
        )

    @staticmethod
    def until(
        look: Callable[[], Any], good: Callable[[Any], bool], *, timeout_s: float = DEADLINE_S
    ) -> Any:
        """Look until what is seen is good; fail with what was seen last."""
        deadline = time.monotonic() + timeout_s
        while not good(seen := look()):
            assert time.monotonic() < deadline, f"not in {timeout_s} s, last seen: {seen}"
            time.sleep(0.05)
        return seen

    def log(self, task_instance_id: int) -> str:
        """The whole log of an attempt."""
        answer = self.http.get(f"/task-instances/{task_instance_id}/log/raw")
        assert answer.status_code == 200, answer.text
        return answer.text
