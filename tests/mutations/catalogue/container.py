"""CONTAINER tasks: closed containers, one at a time, and nothing of them is left."""

from tests.mutations.mutation import Mutation, Promise, mutation

_TYPE = "worker/shoal/worker/types/container"
_KUBERNETES = "worker/shoal/worker/types/kubernetes"
_TESTS = "tests/integration/worker/container"
_ENGINE = f"{_TESTS}/test_engine_contract.py"
_CLUSTER = f"{_TESTS}/test_kubernetes_contract.py"
_SPARK = f"{_TESTS}/test_spark_drivers_contract.py"
_PARAMS = "tests/unit/worker/test_container_params.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a kill before the start of a container is forgotten",
        Promise.KILLED_MEANS_DEAD,
        f"{_TYPE}/local.py",
        ("    if work.is_cancelled:\n", "    if False:\n"),
        (f"{_ENGINE}::test_kill_between_making_and_starting_ends_it",),
    ),
    mutation(
        "a killed container goes on",
        Promise.KILLED_MEANS_DEAD,
        f"{_TYPE}/local.py",
        ("    work.on_cancel(lambda: container.stop(grace_s))\n", ""),
        (f"{_ENGINE}::test_killed_container_is_stopped_and_removed",),
    ),
    mutation(
        "an earlier attempt's container runs beside the next one's",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_TYPE}/local.py",
        ("        end(earlier, _SETTLING_GRACE_S)\n", ""),
        (f"{_ENGINE}::test_next_attempt_ends_what_is_left_first",),
    ),
    mutation(
        "a late attempt ends its successor's container",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_TYPE}/local.py",
        ("found is not None and found.attempt <= work.attempt", "found is not None"),
        (f"{_ENGINE}::test_late_attempt_leaves_its_successors_container_alone",),
    ),
    mutation(
        "a lost container is begun again beside itself",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_TYPE}/kind.py",
        ('given.idempotent or given.engine == "kubernetes"', "True"),
        (f"{_PARAMS}::test_container_that_nobody_else_reaches_is_not_begun_again",),
    ),
    mutation(
        "the engine shows secrets in variables",
        Promise.SECRETS_STAY,
        f"{_TYPE}/inside.py",
        ("if not any(one in value for one in secrets)", "if secrets is not None"),
        (f"{_ENGINE}::test_container_is_closed_and_its_variables_hold_no_secret",),
    ),
    mutation(
        "any folder of the worker can be mounted",
        Promise.SECRETS_STAY,
        f"{_TYPE}/rules.py",
        ("if mount.source not in self.mounts:", "if not self.mounts:"),
        (f"{_ENGINE}::test_folder_that_is_not_listed_is_not_mounted",),
    ),
    mutation(
        "containers keep the rights of root",
        Promise.SECRETS_STAY,
        f"{_TYPE}/engine.py",
        ('        "cap_drop": ["ALL"],\n', ""),
        (f"{_ENGINE}::test_container_is_closed_and_its_variables_hold_no_secret",),
    ),
    mutation(
        "a deleted Job counts as gone while its pod runs",
        Promise.KILLED_MEANS_DEAD,
        f"{_KUBERNETES}/ending.py",
        ("return bool(pods_of(cluster, job.metadata.namespace, tag))", "return False"),
        (f"{_CLUSTER}::test_killed_is_only_what_is_gone",),
    ),
    mutation(
        "a late attempt deletes its successor's Job",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_TYPE}/cluster.py",
        ("if job is not None and _attempt(job) <= work.attempt:", "if job is not None:"),
        (f"{_CLUSTER}::test_late_attempt_leaves_its_successors_job_alone",),
    ),
    mutation(
        "Kubernetes replaces what looks like a variable in a command",
        Promise.TEXT_STAYS_TEXT,
        f"{_TYPE}/job.py",
        ('return text.replace("$", "$$")', "return text"),
        (f"{_CLUSTER}::test_job_and_what_its_pod_says",),
    ),
    mutation(
        "the worker's token goes to a server that a task names",
        Promise.SECRETS_STAY,
        "worker/shoal/worker/types/spark/submit.py",
        ('    cluster.require_server(work.params.master.removeprefix("k8s://"))\n', ""),
        (f"{_SPARK}::test_driver_is_looked_for_where_it_was_submitted_alone",),
    ),
)
