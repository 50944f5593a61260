"""Sub-workflows: messages stored with decisions, in order, answers told from older ones."""

from tests.mutations.mutation import Mutation, Promise, mutation

_ENGINE = "master/shoal/master/engine/engine.py"
_MESSAGES = "master/shoal/master/engine/messages.py"
_SCAN = "master/shoal/master/services/scan.py"
_CHILDREN = "core/shoal/core/decide/children.py"
_TESTS = "tests/integration/master/test_children.py"
_WILD = "tests/unit/core/test_decide_children_wild.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a child has another key each time",
        Promise.ONE_INSTANCE,
        _MESSAGES,
        (
            'return f"child:{parent.task_instance_id}:{parent.index}"',
            'return f"child:{uuid.uuid4()}"',
        ),
        (f"{_TESTS}::test_pause_reaches_a_child_that_was_not_there_yet[sqlite]",),
    ),
    mutation(
        "messages are not stored with the decision",
        Promise.NOTHING_LOST,
        _ENGINE,
        ("notified = await self._messenger.send(uow, to_save, ids, now)", "notified = set[int]()"),
        (f"{_TESTS}::test_recovery_of_the_parent_runs_only_what_failed_two_levels_below[sqlite]",),
    ),
    mutation(
        "a refused child is not told to its parent",
        Promise.PROGRESS,
        _SCAN,
        (
            "notified = await _notify_parents(uow, commands, refused, runs, now)",
            "notified = set[int]()",
        ),
        (f"{_TESTS}::test_child_that_is_refused_fails_its_task_with_the_reason",),
    ),
    mutation(
        "a request overtakes one that could not be stored",
        Promise.NOTHING_LOST,
        _SCAN,
        ("if not await self._request(command):", "if await self._request(command) is None:"),
        (f"{_TESTS}::test_requests_for_one_instance_keep_their_order_when_one_cannot_be_stored",),
    ),
    mutation(
        "an answer that crossed a later request is taken for its outcome",
        Promise.GUARDED_STATES,
        _CHILDREN,
        ('if report.ask is not None and report.ask < child.get("asks", 0):', "if False:"),
        (f"{_WILD}::test_whatever_happens_nothing_hangs_and_successes_are_kept",),
    ),
)
