"""CONTAINER tasks: closed containers, one at a time, and nothing of them is left."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_LOCAL = Place("shoal.worker.types.container.local")
_KIND = Place("shoal.worker.types.container.kind")
_INSIDE = Place("shoal.worker.types.container.contents")
_RULES = Place("shoal.worker.types.container.rules")
_CONTAINER_ENGINE = Place("shoal.worker.types.container.engine")
_ENDING = Place("shoal.worker.types.kubernetes.removal")
_CONTAINER_CLUSTER = Place("shoal.worker.types.container.cluster")
_JOB = Place("shoal.worker.types.container.job")
_SUBMIT = Place("shoal.worker.types.spark.submit")
_TESTS = "tests/integration/worker/container"
_ENGINE = f"{_TESTS}/test_engine_contract.py"
_PARAMS = "tests/unit/worker/test_container_params.py"
_CLUSTER = f"{_TESTS}/test_kubernetes_contract.py"
_SPARK = f"{_TESTS}/test_spark_drivers_contract.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a kill before the start of a container is forgotten",
        _LOCAL["_followed"].never("work.is_cancelled"),
        f"{_ENGINE}::test_kill_between_making_and_starting_ends_it",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a killed container goes on",
        _LOCAL["_followed"].drop("work.on_cancel(...)"),
        f"{_ENGINE}::test_killed_container_is_stopped_and_removed",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an earlier attempt's container runs beside the next one's",
        _LOCAL["run"].drop("end(...)"),
        f"{_ENGINE}::test_next_attempt_ends_what_is_left_first",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a late attempt ends its successor's container",
        _LOCAL["settle"].drop("found.attempt <= work.attempt"),
        f"{_ENGINE}::test_late_attempt_leaves_its_successors_container_alone",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a lost container is begun again beside itself",
        _KIND["repeats_after_loss"].always("given.idempotent or given.engine == 'kubernetes'"),
        f"{_PARAMS}::test_container_that_nobody_else_reaches_is_not_begun_again",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the engine shows secrets in variables",
        _INSIDE["environment"].replace("not any(...)", "secrets is not None"),
        f"{_ENGINE}::test_container_is_closed_and_its_variables_hold_no_secret",
    ),
    Promise.SECRETS_STAY.broken_if(
        "any folder of the worker can be mounted",
        _RULES["require_mounts"].replace("mount.source not in self.mounts", "not self.mounts"),
        f"{_ENGINE}::test_folder_that_is_not_listed_is_not_mounted",
    ),
    Promise.SECRETS_STAY.broken_if(
        "containers keep the rights of root",
        _CONTAINER_ENGINE["_arguments"].drop("'cap_drop': ['ALL']"),
        f"{_ENGINE}::test_container_is_closed_and_its_variables_hold_no_secret",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a deleted Job counts as gone while its pod runs",
        _ENDING["_is_there"].never("bool(pods_of(cluster, job.metadata.namespace, tag))"),
        f"{_CLUSTER}::test_killed_is_only_what_is_gone",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a late attempt deletes its successor's Job",
        _CONTAINER_CLUSTER["settle"].drop("_attempt(job) <= work.attempt"),
        f"{_CLUSTER}::test_late_attempt_leaves_its_successors_job_alone",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "Kubernetes replaces what looks like a variable in a command",
        _JOB["_literal"].replace("text.replace('$', '$$')", "text"),
        f"{_CLUSTER}::test_job_and_what_its_pod_says",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the worker's token goes to a server that a task names",
        _SUBMIT["_end_driver"].drop("cluster.require_server(...)"),
        f"{_SPARK}::test_driver_is_looked_for_where_it_was_submitted_alone",
    ),
)
