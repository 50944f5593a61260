"""Sub-workflows: messages stored with decisions, in order, answers told from older ones."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_MESSAGES = Place("shoal.master.engine.messages")
_ENGINE = Place("shoal.master.engine.engine")
_STARTS = Place("shoal.master.services.commands.starts")
_REQUESTS = Place("shoal.master.services.commands.requests")
_CHILDREN = Place("shoal.core.decide.children")
_TESTS = "tests/integration/master/services/test_children.py"
_WILD = "tests/unit/core/decide/test_decide_children_wild.py"
_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_FAMILIES = "tests/integration/master/engine/test_families.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ROOM.broken_if(
        "a run has any number of descendants",
        _STARTS["admit"].never("self._descendants[parent.root] >= self._most"),
        f"{_FAMILIES}::test_descendants_of_one_run_are_bounded[sqlite]",
    ),
    Promise.ROOM.broken_if(
        "a child starts below a run that is being stopped",
        _STARTS["admit"].replace("[*parent.ancestors, parent.instance_id]", "[parent.instance_id]"),
        f"{_FAMILIES}::test_no_child_starts_below_a_run_that_is_being_stopped[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "requests stand in line behind children that are to start",
        _COMMANDS.replace("IS_NO_START & ~_IS_CHILD_START", "IS_NO_START"),
        f"{_FAMILIES}::test_request_is_read_beside_any_number_of_children[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a child has another key each time",
        _MESSAGES["start_key"].replace(
            "f'child:{parent.task_instance_id}:{parent.index}'", "f'child:{uuid.uuid4()}'"
        ),
        f"{_TESTS}::test_pause_reaches_a_child_that_was_not_there_yet[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "messages are not stored with the decision",
        _ENGINE["_store"].replace(
            "await self._messenger.send(uow, to_save, ids, now)", "set[int]()"
        ),
        f"{_TESTS}::test_recovery_of_the_parent_runs_only_what_failed_two_levels_below[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a refused child is not told to its parent",
        _STARTS["_create_together"].replace("await notify_parents(...)", "set[int]()"),
        f"{_TESTS}::test_child_that_is_refused_fails_its_task_with_the_reason",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a request overtakes one that could not be stored",
        _REQUESTS["carry_out"].replace(
            "not await self._request(command)", "await self._request(command) is None"
        ),
        f"{_TESTS}::test_requests_for_one_instance_keep_their_order_when_one_cannot_be_stored",
    ),
    Promise.GUARDED_STATES.broken_if(
        "an answer that crossed a later request is taken for its outcome",
        _CHILDREN["take"].never("report.ask is not None and report.ask < child.get('asks', 0)"),
        f"{_WILD}::test_whatever_happens_nothing_hangs_and_successes_are_kept",
    ),
)
