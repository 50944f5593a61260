"""CONTAINER tasks in Kubernetes, at a stand-in for its API server: no pod runs here.

What is shown is what Shoal asks for, and what it makes of the states that pods are moved through.
"""

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.container.kind import Container
from tests.integration.drivers.kit import wait_until
from tests.integration.worker.sql.kit import TAG, Ended, Process
from tests.support.servers.kubernetes_api import KubernetesApi, serving

CANARY = "canary-77aa01"


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with serving() as one:
        yield one


class Tasks:
    """Runs attempts in the cluster, each in a folder of its own."""

    def __init__(self, api: KubernetesApi, folder: Path) -> None:
        self._folder, self._number = folder, 0
        self.settings = {
            "kubernetes_config": str(api.kubeconfig(folder)),
            "kubernetes_namespaces": "etl other",
            "kubernetes_service_accounts": "loader",
            "kill_grace_s": "5.0",
        }

    def begun(self, **more: Any) -> Process:
        self._number += 1
        settings = {**self.settings, **more.pop("settings", {})}
        params = {"engine": "kubernetes", "image": "etl/load:1", **more.pop("params", {})}
        folder = self._folder / str(self._number)
        return Process(None, params, folder, kind=Container, settings=settings, **more)

    def ran(self, **more: Any) -> Ended:
        with self.begun(**more) as process:
            return process.ended()


@pytest.fixture
def tasks(api: KubernetesApi, tmp_path: Path) -> Tasks:
    return Tasks(api, tmp_path)


def test_job_and_what_its_pod_says(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun(
        params={
            "command": ["sh", "-c", "echo ${what} $(HOME) $$"],
            "arguments": ["one"],
            "environment": {"MODE": "$(fast)"},
            "secrets": {"pw": CANARY},
            "registry": {"user": "me", "password": f"{CANARY}-registry"},
            "service_account": "loader",
            "user": "1000:1001",
            "cpus": 0.5,
            "memory": "64m",
            "pull": "always",
        },
        parameters={"what": "a"},
        env={"what": "a", "SHOAL_PARAM_WHAT": "a"},
    ) as process:
        pod = api.pod()
        pod.waits("ContainerCreating")
        process.until("the pod waits: ContainerCreating")
        files = api.secret(f"{TAG}-1")
        login = api.secret(f"{TAG}-1-registry")
        job = api.jobs[TAG]
        pod.runs()
        pod.writes("hello", "there")
        process.until("there")
        pod.ended(0, message='{"rows": "3"}\n')
        ended = process.ended()
    assert (ended.code, ended.settled) == (0, True), ended.log
    assert ended.log.endswith("hello\nthere\n")
    assert ended.outputs == {"rows": "3"}
    assert (api.jobs, api.pods, api.secrets) == ({}, {}, {})

    assert job["metadata"]["namespace"] == "etl"
    assert (job["spec"]["backoffLimit"], job["metadata"]["name"]) == (0, TAG)
    spec = job["spec"]["template"]["spec"]
    assert (spec["restartPolicy"], spec["serviceAccountName"]) == ("Never", "loader")
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    [container] = spec["containers"]
    assert container["command"] == ["sh", "-c", "echo $${what} $$(HOME) $$$$"]
    assert {"name": "MODE", "value": "$$(fast)"} in container["env"]
    assert {"name": "what", "value": "a"} in container["env"]
    assert container["resources"] == {"limits": {"cpu": "500m", "memory": str(64 << 20)}}
    security = container["securityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (1000, 1001)
    assert security["privileged"] is security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert CANARY not in json.dumps(job)
    assert files["stringData"]["secrets.pw"] == CANARY
    assert json.loads(files["stringData"]["parameters.json"]) == {"what": "a"}
    assert files["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    [auth] = json.loads(login["stringData"][".dockerconfigjson"])["auths"].values()
    assert base64.b64decode(auth["auth"]).decode() == f"me:{CANARY}-registry"
    assert CANARY not in ended.log


@pytest.mark.parametrize(
    ("reason", "message", "code", "said"),
    [
        ("Error", "", 7, ""),
        ("OOMKilled", "", 137, "more memory than its limit of 64m"),
        ("ContainerCannotRun", "exec: no such file", 128, "ContainerCannotRun: exec: no such file"),
    ],
)
def test_ends_of_containers(
    api: KubernetesApi, tasks: Tasks, reason: str, message: str, code: int, said: str
) -> None:
    with tasks.begun(params={"memory": "64m"}) as process:
        api.pod().ended(code, reason, message)
        ended = process.ended()
    assert (ended.code, ended.settled) == (code, True), ended.log
    assert said in ended.reason
    assert bool(ended.reason) is bool(said)
    assert not api.jobs


def test_too_many_outputs_are_no_success(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        api.pod().ended(0, message="a=" + "x" * 4094)
        ended = process.ended()
    assert ended.code == 65
    assert "the outputs have 4,096 bytes or more" in ended.reason
    assert ended.outputs == {}


def test_evicted_pod_fails_the_attempt(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        api.pod().evicted("the node was low on memory")
        ended = process.ended()
    assert ended.code == 1
    assert "Evicted: the node was low on memory" in ended.reason


def test_job_that_fails_without_its_pod(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        api.pod()
        api.fail_job("DeadlineExceeded", "it was active longer")
        ended = process.ended()
    assert (ended.code, ended.settled) == (1, True)
    assert "DeadlineExceeded: it was active longer" in ended.reason


def test_pod_that_cannot_be_scheduled_is_told_and_given_up(
    api: KubernetesApi, tasks: Tasks
) -> None:
    with tasks.begun(params={"start_timeout": "3s"}) as process:
        api.pod().unschedulable("0/3 nodes are available")
        process.until("the pod waits: Unschedulable: 0/3 nodes are available")
        ended = process.ended()
    assert (ended.code, ended.settled) == (1, True)
    assert "did not start within 3.0s: Unschedulable: 0/3 nodes" in ended.reason
    assert not api.jobs


def test_image_that_cannot_be_pulled_is_told_and_given_up(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun(params={"start_timeout": "3s"}) as process:
        api.pod().waits("ImagePullBackOff", "Back-off pulling image")
        ended = process.ended()
    assert (ended.code, ended.settled) == (1, True)
    assert "did not start within 3.0s: ImagePullBackOff: Back-off pulling image" in ended.reason


def test_hopeless_pod_is_given_up_at_once(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        api.pod().waits("InvalidImageName", "couldn't parse image")
        ended = process.ended()
    assert (ended.code, ended.settled) == (65, True)
    assert "InvalidImageName: couldn't parse image" in ended.reason


def test_log_whose_connection_is_cut_is_whole(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        pod = api.pod()
        pod.cuts = 2
        pod.runs()
        pod.writes("one", "two", at="2026-01-01T00:00:01.5Z")
        wait_until(lambda: pod.cuts == 1)
        pod.writes("three", at="2026-01-01T00:00:01.5Z")
        pod.writes("four", at="2026-01-01T00:00:01.51Z")
        wait_until(lambda: pod.cuts == 0)
        pod.writes("five", at="2026-01-01T00:00:02Z")
        pod.ended(0)
        ended = process.ended()
    assert ended.code == 0, ended.log
    said = [line for line in ended.log.splitlines() if not line.startswith("shoal: ")]
    assert said == ["one", "two", "three", "four", "five"]


def test_killed_job_is_gone(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        pod = api.pod()
        pod.runs()
        pod.writes("started")
        process.until("started")
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert (api.jobs, api.pods, api.secrets) == ({}, {}, {})
    [body] = api.deleted
    assert body["propagationPolicy"] == "Foreground"


def test_killed_is_only_what_is_gone(api: KubernetesApi, tasks: Tasks) -> None:
    api.holds_pods = True
    with tasks.begun() as process:
        api.pod().runs()
        process.until("Job shoal-")
        process.signal(signal.SIGTERM)
        wait_until(lambda: api.deleted)
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    with tasks.begun(settle=True) as settling:
        wait_until(lambda: len(api.deleted) == 2)
        assert settling.is_running
        with api.changed:
            api.jobs.clear()
        asked = len(api.asked)
        wait_until(lambda: len(api.asked) > asked + 2)
        assert settling.is_running  # the pod is there, whatever became of its Job
        with api.changed:
            api.pods.clear()
        ended = settling.ended()
    assert (ended.code, ended.settled) == (0, True), ended.log


def test_what_a_dead_process_has_left_is_settled(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        api.pod().runs()
        process.until("Job shoal-")
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    assert api.jobs
    assert tasks.ran(settle=True).settled
    assert (api.jobs, api.pods) == ({}, {})


def test_next_attempt_ends_what_is_left_first(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        first = api.pod()
        first.runs()
        process.until("Job shoal-")
        process.signal(signal.SIGKILL)
        process.ended()
    with tasks.begun(attempt=2) as process:
        process.until("Job shoal-")
        second = api.pod()
        assert second.name != first.name
        second.ended(0)
        ended = process.ended()
    assert ended.code == 0, ended.log
    assert "ending the Job that an earlier attempt has left" in ended.log


def test_late_attempt_leaves_its_successors_job_alone(api: KubernetesApi, tasks: Tasks) -> None:
    with tasks.begun(attempt=2) as second:
        api.pod().runs()
        second.until("Job shoal-")
        late = tasks.ran(attempt=1)
        assert "a later attempt, number 2, has begun already" in late.reason
        assert tasks.ran(attempt=1, settle=True).settled
        assert api.jobs
        api.pod().ended(0)
        assert second.ended().code == 0


def test_name_that_is_taken_is_refused(api: KubernetesApi, tasks: Tasks) -> None:
    api.refuses["POST", "jobs"] = 409
    ended = tasks.ran()
    assert ended.code == 1
    assert "another attempt of this task has just made" in ended.reason


@pytest.mark.parametrize(
    ("params", "settings", "refuses", "code", "said"),
    [
        ({"namespace": "kube-system"}, {}, {}, 65, "namespace 'kube-system' is not allowed"),
        ({"service_account": "admin"}, {}, {}, 65, "service account 'admin' is not allowed"),
        ({}, {"kubernetes_namespaces": ""}, {}, 65, "no namespace is allowed"),
        ({}, {"kubernetes_config": ""}, {}, 65, "this worker has no Kubernetes"),
        ({}, {"kubernetes_config": "/no/file"}, {}, 65, "kubernetes_config = /no/file"),
        ({}, {}, {("POST", "jobs"): 403}, 65, "jobs is forbidden; the account of"),
        ({}, {}, {("POST", "secrets"): 403}, 65, "create a Secret in the namespace etl"),
        ({}, {}, {("POST", "jobs"): 500}, 1, "could not create a Job"),
    ],
)
def test_what_cannot_run(
    api: KubernetesApi,
    tasks: Tasks,
    params: dict[str, Any],
    settings: dict[str, str],
    refuses: dict[tuple[str, str], int],
    code: int,
    said: str,
) -> None:
    api.refuses |= refuses
    ended = tasks.ran(params=params, settings=settings)
    assert ended.code == code, ended.log
    assert said in ended.reason
    assert ended.settled is (refuses != {("POST", "jobs"): 500})
    assert not api.jobs
    assert "Traceback" not in ended.log


def test_resources_do_not_reach_a_pod(api: KubernetesApi, tasks: Tasks) -> None:
    ended = tasks.ran(before=lambda folder: (folder / "resources").mkdir())
    assert (ended.code, ended.settled) == (65, True)
    assert "which a pod does not see" in ended.reason
