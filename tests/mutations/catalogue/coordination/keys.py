"""Idempotency keys: callers' and Shoal's own never meet, and steer nothing."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_ADMISSION = Place("shoal.master.services.admission")
_COMMANDING = Place("shoal.api.operations.commands")
_TESTS = "tests/integration/sql/runs/test_commands.py"
_CALLERS = "tests/integration/master/services/test_callers_keys.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_INSTANCE.broken_if(
        "keys of Shoal's own commands stand among callers' keys",
        _COMMANDS["own_key"].replace("_OWN + key", "key"),
        f"{_TESTS}::test_callers_keys_and_those_of_shoal_never_meet[sqlite]",
        f"{_CALLERS}::test_schedule_fires[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a caller may write a key of Shoal's own",
        _COMMANDS["add_many"].replace("any(...)", "not new"),
        f"{_TESTS}::test_caller_cannot_write_a_key_of_shoal[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a command of Shoal's own counts as sent when its key is another one's",
        _COMMANDS["send_many"].replace(
            "not is_new and _IDENTITY(found) != _IDENTITY(wanted)", "found is None"
        ),
        f"{_TESTS}::test_own_command_whose_key_another_one_has_is_not_taken_for_sent[sqlite-time]",
    ),
    Promise.PROGRESS.broken_if(
        "a run that was admitted and never told waits for ever",
        _ADMISSION["admit_waiting"].drop("await self._repeat(waiting)"),
        f"{_CALLERS}::test_run_that_was_admitted_but_never_told_is_told_again[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "all starts go to one partition",
        _COMMANDING["_start"].replace(
            "secrets.randbelow(partitions)", "min(0, secrets.randbelow(partitions))"
        ),
        "tests/integration/api/runs/test_commands.py::"
        "test_keys_that_somebody_chooses_do_not_choose_the_partition",
    ),
)
