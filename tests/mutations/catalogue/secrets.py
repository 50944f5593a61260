"""Secrets stay secret, and outputs are part of the result."""

from tests.mutations.mutation import Promise, mutation

_MASKING = "worker/shoal/worker/supervisor/shim/masking.py"
_SCOPE = "core/shoal/core/runs/scope.py"

MUTATIONS = (
    mutation(
        "what could be the beginning of a secret is not held back",
        Promise.SECRETS_STAY,
        _MASKING,
        ("        self._held = text[keep_from:]", "        self._held = b''"),
        ("tests/unit/worker/test_masking.py::test_only_what_may_be_part_of_a_secret_is_held_back",),
    ),
    mutation(
        "attempts with secrets write straight into their logs",
        Promise.SECRETS_STAY,
        "worker/shoal/worker/supervisor/launcher.py",
        ("        if not (masks := masks_of(message)):", "        if masks := masks_of(message):"),
        (
            "tests/integration/worker/test_agent_secrets.py::"
            "test_task_has_the_secret_and_its_log_has_not",
        ),
    ),
    mutation(
        "outputs may hold secrets",
        Promise.SECRETS_STAY,
        "worker/shoal/worker/supervisor/shim/outputs.py",
        ("    if masks:\n", "    if not masks:\n"),
        ("tests/unit/worker/test_outputs.py::test_secrets_are_not_given_on",),
    ),
    mutation(
        "secrets may stand on a command line",
        Promise.SECRETS_STAY,
        _SCOPE,
        ("        if secrets:\n", "        if not secrets:\n"),
        ("tests/unit/core/test_scope.py::test_secret_never_reaches_a_command_line",),
    ),
    mutation(
        "values from outside may name secrets",
        Promise.SECRETS_STAY,
        _SCOPE,
        ("{name: placeholders.escape(text) for name, text in", "{name: text for name, text in"),
        ("tests/unit/core/test_scope.py::test_values_from_outside_cannot_name_a_secret",),
    ),
    mutation(
        "a ciphertext is good under any name",
        Promise.SECRETS_STAY,
        "runtime/shoal/runtime/vault.py",
        ('return f"2/{key}/{project}/{name}".encode()', 'return b""'),
        ("tests/unit/runtime/test_vault.py::test_ciphertext_is_bound_to_its_project_and_name",),
    ),
    mutation(
        "a role that dies leaves an image of its memory",
        Promise.SECRETS_STAY,
        "client/shoal/client/local/roles.py",
        ('    if role != "worker":\n        _hide_memory()\n', ""),
        ("tests/acceptance/test_canaries.py::test_secret_and_password_are_found_nowhere[sqlite]",),
    ),
    mutation(
        "a key whose rotation was killed before its file changed stays in it",
        Promise.SECRETS_STAY,
        "api/shoal/api/operations/secrets/rotation.py",
        ("await asyncio.to_thread(self._vault.file.retire, state.retired)", "list[str]()"),
        (
            "tests/acceptance/test_rotation_kills.py::test_rotation_whose_api_is_killed_"
            "is_given_again_and_loses_nothing[rotate.after_retire]",
        ),
    ),
    mutation(
        "a rotation that was killed forgets the key that encrypted until then",
        Promise.SECRETS_STAY,
        "api/shoal/api/operations/secrets/rotation.py",
        (
            "others = (*now.old, former) if former != key else now.old",
            "others = now.old if former else (*now.old, key)",
        ),
        (
            "tests/acceptance/test_rotation_kills.py::test_rotation_whose_api_is_killed_"
            "is_given_again_and_loses_nothing[rotate.after_promote]",
        ),
    ),
    mutation(
        "a kept password may be sent to another server",
        Promise.SECRETS_STAY,
        "sql/shoal/sql/repositories/definitions/data_sources.py",
        ("before.password and before.spec.server != spec.server", "False"),
        (
            "tests/integration/sql/test_data_sources.py::"
            "test_password_is_kept_for_the_same_server_alone",
        ),
    ),
    mutation(
        "data sources are for tasks of every project",
        Promise.SECRETS_STAY,
        "master/shoal/master/dispatch/sources.py",
        ("return source.project == project or ", "return True or "),
        (
            "tests/integration/master/test_data_sources.py::"
            "test_shared_data_source_comes_with_its_own_projects_password",
        ),
    ),
    mutation(
        "outputs are not part of the stored result",
        Promise.DURABLE_RESULTS,
        "worker/shoal/worker/supervisor/shim/records.py",
        ('{**record, "outputs": outputs}', '{**record, "outputs": {}}'),
        (
            "tests/integration/worker/test_agent_outputs.py::"
            "test_outputs_survive_the_worker_that_could_not_report_them",
        ),
    ),
)
