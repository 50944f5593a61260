"""Secrets stay secret, and outputs are part of the result."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_MASKING = Place("shoal.worker.supervisor.shim.masks")
_LAUNCHER = Place("shoal.worker.supervisor.launcher")
_OUTPUTS = Place("shoal.worker.supervisor.shim.outputs")
_SCOPE = Place("shoal.core.runs.scope")
_VAULT = Place("shoal.runtime.vault")
_ROLES = Place("shoal.client.local.roles")
_ROTATION = Place("shoal.api.operations.secrets.key_rotation")
_DATA_SOURCES = Place("shoal.sql.repositories.definitions.data_sources")
_SOURCES = Place("shoal.master.dispatch.sources")
_RECORDS = Place("shoal.worker.supervisor.shim.records")
_TEST_SCOPE = "tests/unit/core/definition/test_scope.py"
_TEST_ROTATION_KILLS = "tests/acceptance/faults/test_rotation_kills.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "what could be the beginning of a secret is not held back",
        _MASKING["feed"].replace("text[keep_from:]", "b''"),
        "tests/unit/worker/home/test_masking.py::test_only_what_may_be_part_of_a_secret_is_held_back",
    ),
    Promise.SECRETS_STAY.broken_if(
        "attempts with secrets write straight into their logs",
        _LAUNCHER["_start_filter"].replace(
            "not (masks := masks_of(message))", "(masks := masks_of(message))"
        ),
        "tests/integration/worker/agent/test_secrets.py::"
        "test_task_has_the_secret_and_its_log_has_not",
    ),
    Promise.SECRETS_STAY.broken_if(
        "outputs may hold secrets",
        _OUTPUTS["collect"].replace("if masks:\n    ...", "if not masks:\n    ..."),
        "tests/unit/worker/execution/test_outputs.py::test_secrets_are_not_given_on",
    ),
    Promise.SECRETS_STAY.broken_if(
        "secrets may stand on a command line",
        _SCOPE["_without_secrets"].replace("if secrets:\n    ...", "if not secrets:\n    ..."),
        f"{_TEST_SCOPE}::test_secret_never_reaches_a_command_line",
    ),
    Promise.SECRETS_STAY.broken_if(
        "values from outside may name secrets",
        _SCOPE["levels"].replace("placeholders.escape(text)", "text"),
        f"{_TEST_SCOPE}::test_values_from_outside_cannot_name_a_secret",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a ciphertext is good under any name",
        _VAULT["_bound_to"].replace("f'2/{key}/{project}/{name}'.encode()", "b''"),
        "tests/unit/runtime/test_vault.py::test_ciphertext_is_bound_to_its_project_and_name",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a role that dies leaves an image of its memory",
        _ROLES["run_role"].drop("if role != 'worker':\n    ..."),
        "tests/acceptance/test_canaries.py::test_secret_and_password_are_found_nowhere[sqlite]",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a key whose rotation was killed before its file changed stays in it",
        _ROTATION["step"].replace("await asyncio.to_thread(...)", "list[str]()"),
        f"{_TEST_ROTATION_KILLS}::"
        "test_rotation_whose_api_is_killed_is_given_again_and_loses_nothing[rotate.after_retire]",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a rotation that was killed forgets the key that encrypted until then",
        _ROTATION["_promote"].replace(
            "(*now.old, former) if former != key else now.old",
            "now.old if former else (*now.old, key)",
        ),
        f"{_TEST_ROTATION_KILLS}::"
        "test_rotation_whose_api_is_killed_is_given_again_and_loses_nothing[rotate.after_promote]",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a kept password may be sent to another server",
        _DATA_SOURCES["put"].never("before.password and before.spec.server != spec.server"),
        "tests/integration/sql/definitions/test_data_sources.py::"
        "test_password_is_kept_for_the_same_server_alone",
    ),
    Promise.SECRETS_STAY.broken_if(
        "data sources are for tasks of every project",
        _SOURCES["is_shared_with"].always("source.project == project"),
        "tests/integration/master/dispatch/test_data_sources.py::"
        "test_shared_data_source_comes_with_its_own_projects_password",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "outputs are not part of the stored result",
        _RECORDS["store"].replace("'outputs': outputs", "'outputs': {}"),
        "tests/integration/worker/agent/test_outputs.py::"
        "test_outputs_survive_the_worker_that_could_not_report_them",
    ),
)
