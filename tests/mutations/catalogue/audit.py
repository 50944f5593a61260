"""The audit has an entry of every change, and shows whether one was changed since."""

from tests.mutations.mutation import Promise, mutation

_CHAIN = "core/shoal/core/access/audit/chain.py"
_TABLES = "sql/shoal/sql/migrations/versions/0027_schema.py"
_UNIT = "tests/unit/core/test_audit.py::"
_SQL = "tests/integration/sql/test_audit.py::"
_API = "tests/integration/api/access/test_audit.py::"
_MATRIX = "tests/integration/api/access/test_matrix.py::"
_CHANGE_FOUND = f"{_UNIT}test_every_change_is_found"

MUTATIONS = (
    mutation(
        "a change is committed without its entry",
        Promise.AUDITED,
        "sql/shoal/sql/unit_of_work.py",
        ("            await self._recorder(self)\n", "            pass\n"),
        (f"{_SQL}test_entry_is_committed_with_its_change_or_not_at_all",),
    ),
    mutation(
        "handlers get a database that records nothing",
        Promise.AUDITED,
        "api/shoal/api/access/guard.py",
        ("value.recording(record)", "value"),
        (f"{_MATRIX}test_every_change_that_is_committed_brings_its_entry",),
    ),
    mutation(
        "commands are stored without their entries",
        Promise.AUDITED,
        "api/shoal/api/operations/intake.py",
        ("for record in records])", "for record in records[:0]])"),
        (f"{_API}test_command_has_an_entry_and_its_repetition_none",),
    ),
    mutation(
        "a route that changes something needs no action",
        Promise.AUDITED,
        "api/shoal/api/web/route.py",
        ("if action is None and ", "if False and "),
        (f"{_API}test_route_that_changes_something_names_its_action",),
    ),
    mutation(
        "refusals leave no trace",
        Promise.AUDITED,
        "api/shoal/api/access/recording.py",
        (
            '        self.auditor.note(self._entry(Outcome.REFUSED, {"permission": permission}))',
            "        pass",
        ),
        (f"{_API}test_refusals_are_stored_once_and_counted",),
    ),
    mutation(
        "a flood of refusals fills the database",
        Promise.AUDITED,
        "core/shoal/core/access/audit/throttle.py",
        ("if found is None or found.until_s <= now_s:", "if True:"),
        (f"{_UNIT}test_first_refusal_is_due_at_once_and_the_others_are_counted",),
    ),
    mutation(
        "hashes of entries are not compared",
        Promise.AUDITED,
        _CHAIN,
        ("elif link_hash(before.hash, entry) != hashed:", "elif False:"),
        (_CHANGE_FOUND,),
    ),
    mutation(
        "places that are missing in the chain are passed over",
        Promise.AUDITED,
        _CHAIN,
        ("elif position != before.position + 1:", "elif False:"),
        (_CHANGE_FOUND,),
    ),
    mutation(
        "a chain may begin anywhere",
        Promise.AUDITED,
        _CHAIN,
        ("if self._start is not None and self._start not in self._pruned:", "if False:"),
        (f"{_UNIT}test_pruned_beginning_is_vouched_for_by_an_entry_behind_it", _CHANGE_FOUND),
    ),
    mutation(
        "a chain may end before the head that was noted",
        Promise.AUDITED,
        _CHAIN,
        ("for one in self._known.values():", "for one in ():"),
        (f"{_UNIT}test_truncated_end_and_rewritten_tail_are_found_with_a_head_that_was_noted",),
    ),
    mutation(
        "a head that was noted is not compared",
        Promise.AUDITED,
        _CHAIN,
        ("if known is not None and known.hash != hashed:", "if False:"),
        (f"{_UNIT}test_truncated_end_and_rewritten_tail_are_found_with_a_head_that_was_noted",),
    ),
    mutation(
        "two processes may link at once",
        Promise.AUDITED,
        "sql/shoal/sql/repositories/access/audit.py",
        ("        return inserted == len(rows)", "        return True"),
        (f"{_SQL}test_nothing_is_linked_at_a_place_that_is_taken",),
    ),
    mutation(
        "the database lets entries be deleted",
        Promise.AUDITED,
        _TABLES,
        ("BEFORE DELETE ON {name} WHEN NOT", "BEFORE DELETE ON {name} WHEN 0 AND NOT"),
        (f"{_SQL}test_database_refuses_to_change_or_delete",),
    ),
    mutation(
        "owners see the audit of every project",
        Promise.AUDITED,
        "api/shoal/api/routes/access/audit.py",
        ("return replace(wanted, project=project)", "return wanted"),
        (f"{_API}test_owners_see_their_project_alone",),
    ),
    mutation(
        "keys of secrets are used although others may read them",
        Promise.SECRETS_STAY,
        "runtime/shoal/runtime/key_file.py",
        ("if S_IMODE(mode) & _FORBIDDEN:", "if False:"),
        ("tests/unit/runtime/test_vault.py::test_keys_that_others_may_read_are_not_used",),
    ),
    mutation(
        "a key encrypts that a live master does not have",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/secrets/rotation.py",
        ("        if without:\n", "        if False:\n"),
        (
            "tests/integration/api/test_rotation.py::"
            "test_key_that_a_live_master_does_not_have_is_not_primary",
        ),
    ),
    mutation(
        "what was set during a rotation is overwritten",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/repositories/definitions/sealing.py",
        ("table.c.id == old.id, column == old.ciphertext", "table.c.id == old.id"),
        (
            "tests/integration/api/test_rotation.py::"
            "test_value_that_was_set_meanwhile_is_not_overwritten",
        ),
    ),
    mutation(
        "a secret may be stored with a key that is retired",
        Promise.NOTHING_LOST,
        "api/shoal/api/routes/secrets.py",
        ("if not await uow.sealing.holds(key):", "if False:"),
        (
            "tests/integration/api/test_rotation.py::"
            "test_value_sealed_before_a_rotation_is_not_stored_behind_it",
        ),
    ),
    mutation(
        "a key is retired although a value was stored with it meanwhile",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/secrets/rotation.py",
        (
            "if now.primary != key or await uow.sealing.not_with(key, (), 1):",
            "if now.primary != key:",
        ),
        (
            "tests/integration/api/test_rotation.py::"
            "test_value_that_the_old_key_encrypted_last_keeps_it_until_it_is_encrypted_anew",
        ),
    ),
    mutation(
        "a master does not start beside junk where a ciphertext should be",
        Promise.PROGRESS,
        "master/shoal/master/membership/secrets_keys.py",
        ("for one in stored if is_ciphertext(one)", "for one in stored"),
        (
            "tests/integration/master/test_secrets_keys.py::"
            "test_master_starts_beside_junk_where_a_ciphertext_should_be",
        ),
    ),
    mutation(
        "what is refused among many is not noted",
        Promise.AUDITED,
        "api/shoal/api/routes/runs/bulk.py",
        ("        if isinstance(item.error, Forbidden | NotFound):\n", "        if False:\n"),
        (
            "tests/integration/api/access/test_audit.py::"
            "test_each_of_many_has_its_entry_and_refusals_too",
        ),
    ),
    mutation(
        "a master without the key takes work",
        Promise.SECRETS_STAY,
        "master/shoal/master/membership/secrets_keys.py",
        ("await asyncio.to_thread(vault.require, needed)", "pass"),
        (
            "tests/integration/master/test_secrets_keys.py::"
            "test_master_without_the_key_does_not_start",
        ),
    ),
)
