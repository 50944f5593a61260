"""Views show what the caller sees, and no page of theirs is lost or comes for ever."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_HISTORY = Place("shoal.sql.repositories.overview.history")
_TODAY = Place("shoal.api.routes.views.today")
_VIEWS_TODAY = Place("shoal.api.operations.views.today")
_FEED = Place("shoal.api.operations.feed")
_DAYS = Place("shoal.api.operations.views.calendar")
_GRAPH = Place("shoal.core.logic.dependency_graph")
_LISTS = (
    "tests/integration/api/access/test_matrix.py::test_lists_show_what_the_caller_sees_and_no_more"
)
_VIEWS = "tests/integration/api/views/"
_GRAPH_TESTS = "tests/unit/core/logic/test_dependency_graph.py"
_TEST_MATRIX = "tests/integration/api/access/test_matrix.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "the history of events is that of all projects",
        _HISTORY["_events"].drop("found.append(event.c.project.in_(names))"),
        f"{_LISTS}[/history]",
    ),
    Promise.AUTHORISED.broken_if(
        "the history of commands is that of all projects",
        _HISTORY["_commands"].drop("found.append(workflow.c.project_id.in_(sorted(visible)))"),
        f"{_LISTS}[/history]",
    ),
    Promise.AUTHORISED.broken_if(
        "what happens today is that of all projects",
        _TODAY["get_today"].replace("caller.visible", "None"),
        f"{_LISTS}[/today]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "any newer success hides a day that has failed",
        _VIEWS_TODAY["resolved"].replace(
            "run.logical_time in good or (is_by_hand and is_good)", "good"
        ),
        f"{_VIEWS}test_today.py::test_a_day_that_has_failed_stays_until_a_success_for_it",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the history overtakes what was not looked through yet",
        _HISTORY["_merged"].drop("horizon is None or item[0] >= horizon"),
        f"{_VIEWS}test_history.py::test_all_of_it_by_pages_in_the_order_of_time",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a reader that coalesces gets an older event behind a newer one",
        _FEED["offer"].drop("self._unread.pop(key, None)"),
        "tests/integration/api/cluster/test_events.py::"
        "test_a_slow_reader_that_coalesces_keeps_the_newest_and_the_order",
    ),
    Promise.PROGRESS.broken_if(
        "all event streams are woken in one turn of the event loop",
        _FEED["_deliver"].never("woken >= WOKEN_AT_ONCE"),
        "tests/integration/api/cluster/test_events.py::"
        "test_hundreds_of_listeners_are_woken_a_few_in_each_turn_of_the_loop",
    ),
    Promise.PROGRESS.broken_if(
        "an event is encoded for each stream",
        _FEED["of"].never("kept is not None and kept[0] is event"),
        "tests/integration/api/cluster/test_events.py::"
        "test_event_is_encoded_once_for_all_listeners",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a fire time before the oldest run that is kept is missing",
        _DAYS["_expected"].replace("max(since, kept_since) if kept_since else since", "since"),
        f"{_VIEWS}test_grid.py::test_what_nobody_can_know_is_not_missing",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what is waited for is shown as of the day of the picture",
        _GRAPH["edges"].replace("_around(wanted)", "self.windows[source]"),
        f"{_GRAPH_TESTS}::test_each_edge_has_the_window_of_what_is_looked_for",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a late rerun decides when a day is done",
        _GRAPH["_decides"].drop("own.ended is None or source.ended <= own.ended"),
        f"{_GRAPH_TESTS}::test_what_ended_before_or_after_was_not_waited_for",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the chain of a day goes on behind runs of another one",
        _GRAPH["critical_chain"].replace(
            "edge.window[1] <= start or stop <= edge.window[0]", "not own"
        ),
        f"{_GRAPH_TESTS}::test_the_chain_ends_with_runs_of_another_day",
    ),
)
