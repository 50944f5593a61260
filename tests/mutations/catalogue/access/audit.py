"""The audit has an entry of every change, and shows whether one was changed since."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_UNIT_OF_WORK = Place("shoal.sql.unit_of_work")
_GUARD = Place("shoal.api.endpoints.guard")
_INTAKE = Place("shoal.api.operations.intake")
_ROUTE = Place("shoal.api.endpoints.route")
_RECORDING = Place("shoal.api.access.audit")
_THROTTLE = Place("shoal.core.access.audit.throttle")
_CHAIN = Place("shoal.core.access.audit.chain")
_AUDIT = Place("shoal.sql.repositories.access.audit")
_TABLES = Place("shoal.sql.migrations.versions.0027_schema")
_ACCESS_AUDIT = Place("shoal.api.routes.access.audit")
_KEY_FILE = Place("shoal.runtime.key_file")
_ROTATION = Place("shoal.api.operations.secrets.key_rotation")
_SEALING = Place("shoal.sql.repositories.definitions.secrets_keys")
_SECRETS = Place("shoal.api.routes.secrets")
_SECRETS_KEYS = Place("shoal.master.main")
_BULK = Place("shoal.api.routes.runs.bulk")
_SQL = "tests/integration/sql/access/test_audit.py::"
_MATRIX = "tests/integration/api/access/test_matrix.py::"
_API = "tests/integration/api/access/test_audit.py::"
_UNIT = "tests/unit/core/access/test_audit.py::"
_CHANGE_FOUND = f"{_UNIT}test_every_change_is_found"
_TEST_ROTATION = "tests/integration/api/cluster/test_rotation.py"
_TEST_SECRETS_KEYS = "tests/integration/master/dispatch/test_secrets_keys.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUDITED.broken_if(
        "a change is committed without its entry",
        _UNIT_OF_WORK["commit"].drop("await self._recorder(self)"),
        f"{_SQL}test_entry_is_committed_with_its_change_or_not_at_all",
    ),
    Promise.AUDITED.broken_if(
        "handlers get a store that records nothing",
        _GUARD["needs"].replace("value.recording(record)", "value"),
        f"{_MATRIX}test_every_change_that_is_committed_brings_its_entry",
    ),
    Promise.AUDITED.broken_if(
        "commands are stored without their entries",
        _INTAKE["_store"].replace("records", "records[:0]"),
        f"{_API}test_command_has_an_entry_and_its_repetition_none",
    ),
    Promise.AUDITED.broken_if(
        "a route that changes something needs no action",
        _ROUTE["__init__"].never("action is None"),
        f"{_API}test_route_that_changes_something_names_its_action",
    ),
    Promise.AUDITED.broken_if(
        "refusals leave no trace",
        _RECORDING["refused"].drop("self.auditor.note(...)"),
        f"{_API}test_refusals_are_stored_once_and_counted",
    ),
    Promise.AUDITED.broken_if(
        "a flood of refusals fills the database",
        _THROTTLE["add"].always("found is None or found.until_s <= now_s"),
        f"{_UNIT}test_first_refusal_is_due_at_once_and_the_others_are_counted",
    ),
    Promise.AUDITED.broken_if(
        "hashes of entries are not compared",
        _CHAIN["read"].never("link_hash(before.hash, entry) != hashed"),
        _CHANGE_FOUND,
    ),
    Promise.AUDITED.broken_if(
        "places that are missing in the chain are passed over",
        _CHAIN["read"].never("position != before.position + 1"),
        _CHANGE_FOUND,
    ),
    Promise.AUDITED.broken_if(
        "a chain may begin anywhere",
        _CHAIN["end"].never("self._start is not None and self._start not in self._pruned"),
        f"{_UNIT}test_pruned_beginning_is_vouched_for_by_an_entry_behind_it",
        _CHANGE_FOUND,
    ),
    Promise.AUDITED.broken_if(
        "a chain may end before the head that was noted",
        _CHAIN["end"].replace("self._known.values()", "()"),
        f"{_UNIT}test_truncated_end_and_rewritten_tail_are_found_with_a_head_that_was_noted",
    ),
    Promise.AUDITED.broken_if(
        "a head that was noted is not compared",
        _CHAIN["read"].never("known is not None and known.hash != hashed"),
        f"{_UNIT}test_truncated_end_and_rewritten_tail_are_found_with_a_head_that_was_noted",
    ),
    Promise.AUDITED.broken_if(
        "two processes may link at once",
        _AUDIT["link"].always("inserted == len(rows)"),
        f"{_SQL}test_nothing_is_linked_at_a_place_that_is_taken",
    ),
    Promise.AUDITED.broken_if(
        "the database lets entries be deleted",
        _TABLES["_guard_sqlite"].replace("' WHEN NOT ('", "' WHEN 0 AND NOT ('"),
        f"{_SQL}test_database_refuses_to_change_or_delete",
    ),
    Promise.AUDITED.broken_if(
        "owners see the audit of every project",
        _ACCESS_AUDIT["_list"].drop("project"),
        f"{_API}test_owners_see_their_project_alone",
    ),
    Promise.SECRETS_STAY.broken_if(
        "keys of secrets are used although others may read them",
        _KEY_FILE["_read"].never("S_IMODE(mode) & _FORBIDDEN"),
        "tests/unit/runtime/test_vault.py::test_keys_that_others_may_read_are_not_used",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a key encrypts that a live master does not have",
        _ROTATION["_promote"].replace("if without:\n    ...", "if False:\n    ..."),
        f"{_TEST_ROTATION}::test_key_that_a_live_master_does_not_have_is_not_primary",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what was set during a rotation is overwritten",
        _SEALING["replace"].drop("column == old.ciphertext"),
        f"{_TEST_ROTATION}::test_value_that_was_set_meanwhile_is_not_overwritten",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a secret may be stored with a key that is retired",
        _SECRETS["put_secret"].never("not await uow.sealing.holds(key)"),
        f"{_TEST_ROTATION}::test_value_sealed_before_a_rotation_is_not_stored_behind_it",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a key is retired although a value was stored with it meanwhile",
        _ROTATION["_retire"].drop("await uow.sealing.not_with(...)"),
        f"{_TEST_ROTATION}::"
        "test_value_that_the_old_key_encrypted_last_keeps_it_until_it_is_encrypted_anew",
    ),
    Promise.PROGRESS.broken_if(
        "a master does not start beside junk where a ciphertext should be",
        _SECRETS_KEYS["require_keys"].drop("is_ciphertext(one)"),
        f"{_TEST_SECRETS_KEYS}::test_master_starts_beside_junk_where_a_ciphertext_should_be",
    ),
    Promise.AUDITED.broken_if(
        "what is refused among many is not noted",
        _BULK["post_bulk_commands"].never("isinstance(...)"),
        f"{_API}test_each_of_many_has_its_entry_and_refusals_too",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a master without the key takes work",
        _SECRETS_KEYS["require_keys"].drop("await asyncio.to_thread(...)"),
        f"{_TEST_SECRETS_KEYS}::test_master_without_the_key_does_not_start",
    ),
)
