"""What texts of users may cost a process that serves everyone."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_BUDGET = Place("shoal.core.untrusted")
_TEMPLATE = Place("shoal.core.macros.template")
_DRAFT = Place("shoal.core.decide.draft")
_LOGIC = Place("shoal.core.decide.logic")
_PAYLOADS = Place("shoal.master.dispatch.payloads")
_SIDE = Place("shoal.master.dispatch.side_thread")
_TEMPLATES = Place("shoal.runtime.side.templates")
_PROCESSES = Place("shoal.runtime.side.process")
_PLAN = Place("shoal.api.operations.authoring.plan")
_DRAFTS = Place("shoal.api.routes.workflows.drafts")
_COMPARISON = Place("shoal.api.operations.authoring.comparison")
_TURNS = Place("shoal.api.web.turns")
_BODY = Place("shoal.api.web.body")
_PROBLEMS = Place("shoal.api.web.problems")
_SHORTAGE = Place("shoal.runtime.limits.memory_shortage")
_LAG = Place("shoal.coordination.session.loop_lag")
_BACKGROUND = Place("shoal.coordination.background")
_SIDE_PROCESS = "tests/unit/runtime/test_side_process.py"
_TURNS_TESTS = "tests/unit/api/test_turns.py"
_RENDER = "tests/unit/core/macros/test_render_budget.py"
_LONG_DECISIONS = "tests/unit/core/decide/test_long_decisions.py"
_SHORTAGES = "tests/unit/runtime/test_memory_shortage.py"
_LONG_TEXTS = "tests/integration/master/dispatch/test_long_texts.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "the texts of a task may take any number of steps",
        _BUDGET["Budget.spend"].never("self.steps < 0"),
        f"{_RENDER}::test_all_texts_of_a_task_share_one_budget_and_the_costliest_is_named",
    ),
    Promise.PROGRESS.broken_if(
        "the texts of a task may make any number of characters",
        _BUDGET["Budget.spend"].never("self.characters < 0"),
        f"{_RENDER}::test_many_large_values_stop_at_the_budget_of_characters",
    ),
    Promise.PROGRESS.broken_if(
        "a text is read to its end, however many marks it has",
        _TEMPLATE["_Scanner.scan"].never("(marks := marks + 1) > self._most"),
        f"{_RENDER}::test_a_text_that_is_saved_has_a_bound_of_marks",
    ),
    Promise.PROGRESS.broken_if(
        "long texts are rendered while a master decides in its event loop",
        _DRAFT["Draft.__init__"].always("most == sys.maxsize"),
        f"{_LONG_DECISIONS}::test_long_text_of_a_task_of_the_master_is_decided_elsewhere",
    ),
    Promise.PROGRESS.broken_if(
        "an item that cannot be rendered stops its run",
        _LOGIC["_advance"].always("not children.any_started()"),
        "tests/unit/core/decide/test_decide_children.py"
        "::test_item_that_cannot_be_rendered_is_refused_and_the_others_run",
    ),
    Promise.PROGRESS.broken_if(
        "items of a MAP fail because others have used the budget of their decision",
        _LOGIC["_advance"].never("not draft.has_room_for_texts and children.moving()"),
        "tests/unit/core/decide/test_decide_children.py"
        "::test_items_beyond_the_budget_of_a_decision_start_in_later_ones",
    ),
    Promise.PROGRESS.broken_if(
        "each item of a MAP that starts looks at all items before it",
        _LOGIC["_advance"].replace(
            "children.to_start()", "iter(lambda: next(children.to_start(), None), None)"
        ),
        "tests/unit/core/decide/test_decide_children.py"
        "::test_steps_of_a_decision_grow_with_its_items_and_not_with_their_square",
    ),
    Promise.PROGRESS.broken_if(
        "long texts of a payload are rendered in the event loop",
        _PAYLOADS["PayloadMaker.make"].replace(
            "has_long_texts(spec, own)", "has_long_texts(spec, own) and False"
        ),
        f"{_LONG_TEXTS}::test_long_texts_do_not_hold_the_event_loop",
    ),
    Promise.PROGRESS.broken_if(
        "short texts wait for all long ones of a call",
        _SIDE["SideThread.run"].replace("None if begun else patience.left_s", "None"),
        f"{_LONG_TEXTS}::test_one_call_grants_short_texts_while_long_ones_wait[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a task with long texts is begun again and again",
        _SIDE["SideThread.run"].replace(
            "not begun and patience.left_s <= 0", "patience.left_s <= 0"
        ),
        f"{_LONG_TEXTS}::test_a_task_that_has_begun_is_finished_whatever_it_takes",
    ),
    Promise.PROGRESS.broken_if(
        "all filters of a template together may work for any time",
        _TEMPLATES["_spend"].drop("_WORK.get().spend(1, characters)"),
        "tests/unit/runtime/test_templates.py::test_all_filters_of_a_template_share_a_budget",
    ),
    Promise.PROGRESS.broken_if(
        "a range in a template counts for nothing",
        _TEMPLATES["_length"].never("isinstance(value, range)"),
        "tests/unit/runtime/test_templates.py::test_a_range_is_as_long_as_what_is_in_it[size]",
    ),
    Promise.PROGRESS.broken_if(
        "a side process works for any time",
        _PROCESSES["_answer"].drop("signal.setitimer(signal.ITIMER_PROF, cpu_s)"),
        f"{_SIDE_PROCESS}::test_work_beyond_the_limits_ends_and_the_next_is_done",
    ),
    Promise.PROGRESS.broken_if(
        "a side process takes any memory",
        _PROCESSES["main"].drop("resource.setrlimit(resource.RLIMIT_AS, (limit, limit))"),
        f"{_SIDE_PROCESS}::test_work_beyond_the_limits_ends_and_the_next_is_done",
    ),
    Promise.PROGRESS.broken_if(
        "one owner takes all side processes",
        _PROCESSES["SideProcesses.run"].drop(
            "await turns.enter_async_context(self._owners[owner])"
        ),
        f"{_SIDE_PROCESS}::test_one_owner_has_one_process_and_leaves_the_others_to_others",
    ),
    Promise.PROGRESS.broken_if(
        "texts of any length are compared in the event loop of the API",
        _PLAN["compared"].always("is_short(before, after)"),
        "tests/integration/api/definitions/test_large_definitions.py"
        "::test_lines_that_take_long_to_compare_hold_nobody[False]",
    ),
    Promise.PROGRESS.broken_if(
        "others cannot write while the texts of a plan are compared",
        _DRAFTS["plan_workflow"].replace(
            "async with store.unit_of_work() as uow:\n"
            "    plan = await plan_of(uow, checked, store.clock(), caller.visible)\n"
            "found = await plan_out(plan, work)",
            "async with store.unit_of_work() as uow:\n"
            "    plan = await plan_of(uow, checked, store.clock(), caller.visible)\n"
            "    found = await plan_out(plan, work)",
        ),
        "tests/integration/api/definitions/test_large_definitions.py"
        "::test_others_write_while_the_texts_of_a_plan_are_compared",
    ),
    Promise.PROGRESS.broken_if(
        "any number of lines is compared in the event loop of the API",
        _COMPARISON["is_short"].replace("len(one.written().splitlines()) <= _SHORT_LINES", "True"),
        "tests/integration/api/definitions/test_large_definitions.py"
        "::test_many_lines_are_not_compared_in_the_event_loop_however_short_they_are",
    ),
    Promise.PROGRESS.broken_if(
        "a caller has any number of large requests",
        _TURNS["LargeRequests.turn"].never("self._there[caller] > MOST_WAITING"),
        f"{_TURNS_TESTS}::test_the_next_of_a_caller_is_refused_at_once_and_not_that_of_others",
    ),
    Promise.PROGRESS.broken_if(
        "a caller takes all turns of large requests",
        _TURNS["LargeRequests.turn"].drop('("your other", WAIT_FOR_OWN_S, self._locks[caller])'),
        f"{_TURNS_TESTS}::test_a_caller_has_one_turn_and_leaves_the_other_to_others",
    ),
    Promise.PROGRESS.broken_if(
        "a body may have any number of members",
        _BODY["_check_storable"].never("len(members) > MOST_MEMBERS"),
        "tests/integration/api/web/test_large_requests.py"
        "::test_a_body_of_too_many_values_is_refused[parameters]",
    ),
    Promise.PROGRESS.broken_if(
        "a process that stood still is said to have had a long step",
        _LAG["LoopLag.run"].replace("min(now_s - due_s, used_s)", "now_s - due_s"),
        "tests/unit/coordination/session/test_loop_lag.py"
        "::test_a_process_that_stood_still_was_late_without_a_step",
    ),
    Promise.PROGRESS.broken_if(
        "an API without memory answers each request with an error",
        _PROBLEMS["unexpected"].drop("memory_shortage.report(error)"),
        "tests/integration/api/web/test_serve.py"
        "::test_an_api_without_memory_ends_so_that_it_is_started_again",
    ),
    Promise.PROGRESS.broken_if(
        "a process without memory goes on after an error of an extension",
        _SHORTAGE["MemoryShortage.watching"].replace(
            "(in_extension, in_another_thread)", "(unraisable, in_another_thread)"
        ),
        f"{_SHORTAGES}::test_process_without_memory_ends_with_one_line[code that cannot raise]",
    ),
    Promise.PROGRESS.broken_if(
        "a process without memory goes on without one of its loops",
        _BACKGROUND["_report"].drop("memory_shortage.report(error)"),
        f"{_SHORTAGES}::test_process_without_memory_ends_with_one_line[background loop]",
    ),
)
