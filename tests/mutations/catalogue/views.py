"""Views show what the caller sees, and no page of theirs is lost or comes for ever."""

from tests.mutations.mutation import Promise, mutation

_HISTORY = "sql/shoal/sql/repositories/overview/history.py"
_GRAPH = "core/shoal/core/logic/dependency_graph.py"
_GRAPH_TESTS = "tests/unit/core/test_dependency_graph.py"
_VIEWS = "tests/integration/api/views/"
_LISTS = (
    "tests/integration/api/access/test_matrix.py::test_lists_show_what_the_caller_sees_and_no_more"
)

MUTATIONS = (
    mutation(
        "the history of events is that of all projects",
        Promise.AUTHORISED,
        _HISTORY,
        ("            found.append(event.c.project.in_(names))\n", "            pass\n"),
        (f"{_LISTS}[/history]",),
    ),
    mutation(
        "the history of commands is that of all projects",
        Promise.AUTHORISED,
        _HISTORY,
        (
            "            found.append(workflow.c.project_id.in_(sorted(visible)))\n",
            "            pass\n",
        ),
        (f"{_LISTS}[/history]",),
    ),
    mutation(
        "what happens today is that of all projects",
        Promise.AUTHORISED,
        "api/shoal/api/routes/views/today.py",
        ("project, caller.visible)", "project, None)"),
        (f"{_LISTS}[/today]",),
    ),
    mutation(
        "any newer success hides a day that has failed",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/views/today.py",
        ("if run.logical_time in good or (is_by_hand and is_good):", "if good:"),
        (f"{_VIEWS}test_today.py::test_a_day_that_has_failed_stays_until_a_success_for_it",),
    ),
    mutation(
        "the history overtakes what was not looked through yet",
        Promise.NOTHING_LOST,
        _HISTORY,
        ("if horizon is None or item[0] >= horizon]", "]"),
        (f"{_VIEWS}test_history.py::test_all_of_it_by_pages_in_the_order_of_time",),
    ),
    mutation(
        "a reader that coalesces gets an older event behind a newer one",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/feed.py",
        ("            self._unread.pop(key, None)\n", ""),
        (
            "tests/integration/api/test_events.py::"
            "test_a_slow_reader_that_coalesces_keeps_the_newest_and_the_order",
        ),
    ),
    mutation(
        "a fire time before the oldest run that is kept is missing",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/views/days.py",
        ("max(since, kept_since) if kept_since else since", "since"),
        (f"{_VIEWS}test_grid.py::test_what_nobody_can_know_is_not_missing",),
    ),
    mutation(
        "what is waited for is shown as of the day of the picture",
        Promise.NOTHING_LOST,
        _GRAPH,
        ("tuple(some), _around(wanted))", "tuple(some), self.windows[source])"),
        (f"{_GRAPH_TESTS}::test_each_edge_has_the_window_of_what_is_looked_for",),
    ),
    mutation(
        "a late rerun decides when a day is done",
        Promise.NOTHING_LOST,
        _GRAPH,
        (" and (own.ended is None or source.ended <= own.ended)", ""),
        (f"{_GRAPH_TESTS}::test_what_ended_before_or_after_was_not_waited_for",),
    ),
    mutation(
        "the chain of a day goes on behind runs of another one",
        Promise.NOTHING_LOST,
        _GRAPH,
        (
            "        if edge.window[1] <= start or stop <= edge.window[0]:\n",
            "        if not own:\n",
        ),
        (f"{_GRAPH_TESTS}::test_the_chain_ends_with_runs_of_another_day",),
    ),
)
