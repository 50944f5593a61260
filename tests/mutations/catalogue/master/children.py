"""Sub-workflows: messages stored with decisions, in order, answers told from older ones."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_MESSAGES = Place("shoal.master.engine.messages")
_ENGINE = Place("shoal.master.engine.engine")
_STARTS = Place("shoal.master.services.commands.starts")
_REQUESTS = Place("shoal.master.services.commands.requests")
_SCANNER = Place("shoal.master.services.commands.scanner")
_CHILDREN = Place("shoal.core.decide.children")
_ENDINGS = Place("shoal.core.decide.endings")
_LOGIC = Place("shoal.core.decide.logic")
_TESTS = "tests/integration/master/services/test_children.py"
_WILD = "tests/unit/core/decide/test_decide_children_wild.py"
_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_FAMILIES = "tests/integration/master/engine/test_families.py"

_DECIDE = "tests/unit/core/decide/test_decide_children.py"
_HELD_RUNS = Place("shoal.master.engine.held_runs")
_QUARANTINE = Place("shoal.master.engine.quarantine")

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "quarantined children keep their places",
        _CHILDREN["with_place"].always("'quarantined' not in self._children[str(i)]"),
        f"{_DECIDE}::test_quarantined_child_holds_no_place_of_its_parent",
        "tests/unit/core/decide/test_decide_model.py::"
        "test_decide_and_the_reference_agree_after_every_event[0]",
    ),
    Promise.PROGRESS.broken_if(
        "a stop of a run waits for the repair of a quarantined child",
        _ENDINGS["stop_children"].replace("children.is_awaited()", "bool(children.moving())"),
        f"{_DECIDE}::test_stop_ends_without_its_quarantined_children",
    ),
    Promise.PROGRESS.broken_if(
        "a stop under way waits for a child that is quarantined meanwhile",
        _LOGIC["_go_on"].replace("children.is_awaited()", "children.moving()"),
        f"{_DECIDE}::test_stop_that_waits_for_a_child_ends_when_that_is_quarantined",
    ),
    Promise.PROGRESS.broken_if(
        "a pause of a run waits for the repair of a quarantined child",
        _LOGIC["hold"].replace("children.is_awaited()", "children.moving()"),
        f"{_DECIDE}::test_pause_ends_without_its_quarantined_children",
    ),
    Promise.PROGRESS.broken_if(
        "a pause under way waits for a child that is quarantined meanwhile",
        _CHILDREN["working"].never("self._is_left_alone(i)"),
        f"{_DECIDE}::test_pause_that_waits_for_a_child_ends_when_that_is_quarantined",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a stop leaves a quarantined start to a later attempt, which cannot name it",
        _CHILDREN["_is_left_alone"].always('"instance" in child'),
        f"{_DECIDE}::test_stop_waits_for_a_quarantined_start_to_be_withdrawn",
    ),
    Promise.ROOM.broken_if(
        "a child stays quarantined for its parent when it reports",
        _CHILDREN["take"].drop("child.pop('quarantined', None)"),
        f"{_DECIDE}::test_task_does_not_end_while_its_last_child_is_quarantined",
    ),
    Promise.GUARDED_STATES.broken_if(
        "former versions take the news of a quarantine for a report",
        _MESSAGES.replace("-1", "0"),
        f"{_TESTS}::test_quarantined_child_holds_no_place_in_the_window_of_a_map[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "parents do not hear that children are quarantined",
        _HELD_RUNS["_report_aside"].replace("_instances_among(items)", "[]"),
        f"{_TESTS}::test_quarantined_child_holds_no_place_in_the_window_of_a_map[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "parents do not hear that starts of children are quarantined",
        _HELD_RUNS["_report_aside"].never("one.kind is ItemKind.COMMAND"),
        f"{_TESTS}::test_quarantined_start_of_a_child_holds_no_place_in_the_window_of_a_map[sqlite]",
    ),
    Promise.ROOM.broken_if(
        "parents do not hear that quarantined children are tried again",
        _ENGINE["_readmit"].replace("await messages.tell_of_quarantine(...)", "set[int]()"),
        f"{_TESTS}::test_quarantined_child_holds_no_place_in_the_window_of_a_map[sqlite]",
    ),
    Promise.ROOM.broken_if(
        "the news of a quarantine follow those of its end",
        _QUARANTINE["_store"].replace("one and not one.on_trial", "one"),
        f"{_TESTS}::test_no_news_of_a_quarantine_follow_the_news_of_its_end",
    ),
    Promise.PROGRESS.broken_if(
        "a new attempt does not hear that a child was quarantined before it took its request",
        _MESSAGES["tell_of_quarantine"].replace("await uow.commands.asking_parents(...)", "{}"),
        f"{_TESTS}::test_new_attempt_hears_that_a_child_was_quarantined_before_it_took_its_request"
        "[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a quarantined child answers no request to recover",
        _ENGINE["_is_ours"].always("item.event.parent is None"),
        f"{_TESTS}::test_new_attempt_hears_that_a_child_was_quarantined_before_it_took_its_request"
        "[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a recovery of a quarantined child waits for the request of its parent, and that for it",
        _REQUESTS["carry_out"].replace(
            "is_held = True\nself.waiting.add(command.id)", "self.waiting.add(command.id)\nreturn"
        ),
        f"{_TESTS}::test_requests_of_users_overtake_messages_to_a_quarantined_child",
    ),
    Promise.PROGRESS.broken_if(
        "messages to a run that leaves quarantine wait for the next regular poll",
        _SCANNER["on_readmitted"].drop("self.notify(run.partition)"),
        f"{_TESTS}::test_stop_that_waits_for_a_recovered_child_needs_no_regular_poll",
    ),
    Promise.PROGRESS.broken_if(
        "a request to a child is taken for its start",
        _COMMANDS["parents"].drop("c.type == CommandType.START"),
        f"{_TESTS}::test_only_starts_of_children_have_parents_that_wait_for_them",
    ),
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
    Promise.ROOM.broken_if(
        "the next attempt of a task takes its repaired children for quarantined",
        _CHILDREN["continue_for_new_attempt"].drop("child.pop('quarantined', None)"),
        "tests/unit/core/decide/test_decide_children.py::"
        "test_next_attempt_does_not_take_a_repaired_child_for_quarantined",
    ),
)
