"""Idempotency keys: callers' and Shoal's own never meet, and steer nothing."""

from tests.mutations.mutation import Mutation, Promise, mutation

_COMMANDS = "sql/shoal/sql/repositories/runs/commands.py"
_TESTS = "tests/integration/sql/test_commands.py"
_CALLERS = "tests/integration/master/test_callers_keys.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "keys of Shoal's own commands stand among callers' keys",
        Promise.ONE_INSTANCE,
        _COMMANDS,
        ("return _OWN + key", "return key"),
        (
            f"{_TESTS}::test_callers_keys_and_those_of_shoal_never_meet[sqlite]",
            f"{_CALLERS}::test_schedule_fires[sqlite]",
        ),
    ),
    mutation(
        "a caller may write a key of Shoal's own",
        Promise.ONE_INSTANCE,
        _COMMANDS,
        ("if any({_OWN, _CALLER} & set(one.idempotency_key) for one in new):", "if not new:"),
        (f"{_TESTS}::test_caller_cannot_write_a_key_of_shoal[sqlite]",),
    ),
    mutation(
        "a command of Shoal's own counts as sent when its key is another one's",
        Promise.NOTHING_LOST,
        _COMMANDS,
        ("if not is_new and _IDENTITY(found) != _IDENTITY(wanted):", "if found is None:"),
        (
            f"{_TESTS}::test_own_command_whose_key_another_one_has_is_not_taken_for_sent[sqlite-time]",
        ),
    ),
    mutation(
        "a run that was admitted and never told waits for ever",
        Promise.PROGRESS,
        "master/shoal/master/services/admission.py",
        ("        await self._repeat(waiting)\n", ""),
        (f"{_CALLERS}::test_run_that_was_admitted_but_never_told_is_told_again[sqlite]",),
    ),
    mutation(
        "all starts go to one partition",
        Promise.PROGRESS,
        "api/shoal/api/operations/commanding.py",
        (
            "partition=secrets.randbelow(partitions),",
            "partition=min(0, secrets.randbelow(partitions)),",
        ),
        (
            "tests/integration/api/test_commands.py::"
            "test_keys_that_somebody_chooses_do_not_choose_the_partition",
        ),
    ),
)
