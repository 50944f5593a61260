"""One container in Kubernetes: a Job, from what is left of earlier ones to its end."""

import os
import threading
import time
from pathlib import Path
from typing import Any

from kubernetes.client.exceptions import ApiException

from shoal.core.definition.resources import RESOURCES
from shoal.core.timing.durations import format_duration
from shoal.core.untrusted import read_count
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.container import job as manifests
from shoal.worker.types.container.contents import environment, files
from shoal.worker.types.container.kind import ContainerParams
from shoal.worker.types.container.rules import Rules
from shoal.worker.types.kubernetes.client import ANSWER_S, TAG, KubernetesCluster
from shoal.worker.types.kubernetes.pod_log import PodLog
from shoal.worker.types.kubernetes.pods import PodState, state_of
from shoal.worker.types.kubernetes.removal import end_job, job_of, pods_of

_LOOK_S = 0.5
_LOG_S = 15.0  # for the rest of the log of a pod that has ended
_END_S = 60.0
_SETTLING_S = 15.0  # within what a settling process has
# Of the worker's grace, as for local containers.
_SHARE_OF_GRACE = 0.6
# The worker ends what is too late itself; a Job whose worker is lost ends by its own deadline.
_DEADLINE_SLACK_S = 120.0
_CONFLICT = 409


def run(work: Work[ContainerParams], rules: Rules) -> None:
    """Run the Job to its end; the exit code of its container is the task's."""
    with work.beginning():
        cluster = KubernetesCluster(work.settings)
        namespace = rules.namespace(work.params)
        rules.require_service_account(work.params.service_account)
        _require_no_resources(work.folder)
        earlier = job_of(cluster, namespace, work.tag)
    work.log(f"shoal: {cluster}, namespace {namespace}")
    if earlier is not None:
        if _attempt(earlier) > work.attempt:
            number = _attempt(earlier)
            raise WorkFailed(f"a later attempt, number {number}, has begun already")
        work.log("shoal: ending the Job that an earlier attempt has left")
        end_job(cluster, earlier, work.tag, _END_S)
    stopping = threading.Event()
    work.on_cancel(stopping.set)
    work.require_wanted()
    job = _created(work, cluster, namespace, rules)
    try:
        _create_secrets(work, cluster, job)
        work.log(f"shoal: Job {job.metadata.name}")
        ended = _Following(work, cluster, job, stopping).until_ended()
    finally:
        end_job(cluster, job, work.tag, _END_S)
        work.settled()
    _judge(work, ended)


def settle(work: Work[ContainerParams], rules: Rules) -> None:
    """End the Job that an attempt has left, unless a later one has made it."""
    cluster = KubernetesCluster(work.settings)
    job = job_of(cluster, rules.namespace(work.params), work.tag)
    if job is not None and _attempt(job) <= work.attempt:
        end_job(cluster, job, work.tag, _SETTLING_S)
    work.settled()


def _attempt(job: Any) -> int:
    text = str((job.metadata.labels or {}).get(manifests.ATTEMPT, ""))
    return read_count(text) or 0


def _labels(work: Work[ContainerParams]) -> dict[str, str]:
    return {TAG: work.tag, manifests.ATTEMPT: str(work.attempt)}


def _require_no_resources(folder: Path) -> None:
    if (folder / RESOURCES).is_dir():
        text = "`resources` are files of this worker, which a pod does not see: put them into the "
        raise WorkFailed(f"{text}image, or run the container by docker or podman", permanent=True)


def _created(
    work: Work[ContainerParams], cluster: KubernetesCluster, namespace: str, rules: Rules
) -> Any:
    deadline_s = work.timeout_s + _DEADLINE_SLACK_S if work.timeout_s else None
    body = manifests.job(
        work.params,
        _labels(work),
        environment(work, manifests.OUTPUT),
        files(work),
        grace_s=rules.grace_s * _SHARE_OF_GRACE,
        deadline_s=deadline_s,
    )
    try:
        with cluster.told(f"create a Job in the namespace {namespace}"):
            try:
                return cluster.batch.create_namespaced_job(
                    namespace, body, _request_timeout=ANSWER_S
                )
            except ApiException as error:
                if error.status == _CONFLICT:
                    text = f"{cluster}: another attempt of this task has just made {work.tag}"
                    raise WorkFailed(text) from error
                raise
    except WorkFailed as failed:
        if failed.permanent:  # refused: nothing was made
            work.settled()
        raise


def _create_secrets(work: Work[ContainerParams], cluster: KubernetesCluster, job: Any) -> None:
    """Create what the pod waits for. Its owner is the Job, so that nothing is left of it."""
    labels, namespace = _labels(work), job.metadata.namespace
    bodies = [manifests.secret(labels, job, files(work))]
    if work.params.registry is not None:
        login = manifests.registry_secret(labels, job, work.params.image, work.params.registry)
        bodies.append(login)
    for body in bodies:
        with cluster.told(f"create a Secret in the namespace {namespace}"):
            cluster.core.create_namespaced_secret(namespace, body, _request_timeout=ANSWER_S)


class _Following:
    """Watches the pod of a Job, and tells what it waits for and what it writes."""

    def __init__(
        self,
        work: Work[ContainerParams],
        cluster: KubernetesCluster,
        job: Any,
        stopping: threading.Event,
    ) -> None:
        self._work, self._cluster, self._job, self._stopping = work, cluster, job, stopping
        self._namespace = str(job.metadata.namespace)
        self._log: PodLog | None = None
        self._told = ""

    def until_ended(self) -> PodState:
        """Return the pod's state when it has ended. Raises WorkFailed, Cancelled."""
        give_up_at = time.monotonic() + self._work.params.start_timeout
        while True:
            self._work.require_wanted()
            state = self._state()
            if state.has_started and self._log is None:
                self._log = PodLog(self._cluster, self._namespace, state.name, self._work.log_bytes)
                self._log.start()
            if state.code is not None:
                if self._log is not None and not self._log.finish(_LOG_S):
                    self._work.log("shoal: the end of the log could not be read")
                return state
            if not state.has_started:
                self._tell_waiting(state, is_too_long=time.monotonic() > give_up_at)
            self._stopping.wait(_LOOK_S)

    def _state(self) -> PodState:
        pods = pods_of(self._cluster, self._namespace, self._work.tag)
        own = [pod for pod in pods if _is_of(pod, self._job)]
        if own:
            state = state_of(own[0])
            if state.code is not None:
                return state
        job = job_of(self._cluster, self._namespace, self._work.tag)
        if job is None or job.metadata.uid != self._job.metadata.uid:
            raise WorkFailed("the Job was deleted by another client")
        for condition in (job.status and job.status.conditions) or ():
            if condition.type == "Failed" and condition.status == "True":
                why = f"{condition.reason}: {condition.message}"
                raise WorkFailed(f"the Job has failed without an end of its pod: {why}")
        return state if own else PodState("", waiting="no pod was made yet: is there a quota?")

    def _tell_waiting(self, state: PodState, *, is_too_long: bool) -> None:
        if state.waiting != self._told:
            self._told = state.waiting
            self._work.log(f"shoal: the pod waits: {state.waiting}")
        if state.is_hopeless:
            raise WorkFailed(f"the pod cannot start: {state.waiting}", permanent=True)
        if is_too_long:
            limit = format_duration(self._work.params.start_timeout)
            raise WorkFailed(f"the pod did not start within {limit}: {state.waiting}")


def _is_of(pod: Any, job: Any) -> bool:
    return any(owner.uid == job.metadata.uid for owner in pod.metadata.owner_references or ())


def _judge(work: Work[ContainerParams], ended: PodState) -> None:
    """Take over the outputs, or raise WorkFailed with the reason."""
    if ended.reason == "OOMKilled":
        text = (
            f"the container used more memory than its limit of {work.params.memory or 'its node'}"
        )
        raise WorkFailed(f"{text}: raise `memory`, or let it use less", exit_code=ended.code)
    if ended.reason:
        text = f"{ended.reason}: {ended.message}" if ended.message else ended.reason
        raise WorkFailed(f"Kubernetes ended the pod: {text}", exit_code=ended.code)
    if ended.code:
        raise WorkFailed("", exit_code=ended.code)  # the log says why
    message = ended.message.encode()
    if len(message) >= manifests.MOST_OUTPUT:
        most = f"{manifests.MOST_OUTPUT:,} bytes"
        text = f"the outputs have {most} or more, and Kubernetes keeps no more"
        raise WorkFailed(f"{text}; write less to $SHOAL_OUTPUT", permanent=True)
    if message:
        Path(os.environ["SHOAL_OUTPUT"]).write_bytes(message)
