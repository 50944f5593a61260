"""No edit is lost, and nothing is made on the way to something else: each check by itself."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_CONDITIONS = Place("shoal.api.endpoints.preconditions")
_GUARD = Place("shoal.api.endpoints.guard")
_PUBLISHED = Place("shoal.api.routes.workflows.published")
_EVENTS = Place("shoal.api.routes.events")
_TESTS = "tests/integration/api/web/test_preconditions.py::"
_EDITORS = _TESTS + "test_second_of_two_editors_is_told_what_the_first_has_done"
_NEW = _TESTS + "test_what_is_to_be_new_replaces_nothing"
_BROWSER = _TESTS + "test_browser_has_to_say_what_it_has_seen"
_PROJECTS = (
    _TESTS + "test_nothing_but_a_project_itself_makes_a_project",
    _TESTS + "test_neither_a_definition_nor_a_file_makes_a_project",
)

MUTATIONS: tuple[Mutation, ...] = (
    Promise.NOTHING_LOST.broken_if(
        "If-Match is ignored",
        _CONDITIONS["check"].never("not self._match & {ANY, tag}"),
        _EDITORS,
    ),
    Promise.NOTHING_LOST.broken_if(
        "If-Match of what is gone is ignored",
        _CONDITIONS["check"].replace("if self._match is not None:\n    ...", "if False:\n    ..."),
        _EDITORS,
    ),
    Promise.NOTHING_LOST.broken_if(
        "If-None-Match is ignored",
        _CONDITIONS["check"].never("self._must_be_new"),
        _NEW,
    ),
    Promise.NOTHING_LOST.broken_if(
        "browsers overwrite blindly",
        _CONDITIONS["_preconditions"].never("caller.credential.is_session"),
        _BROWSER,
    ),
    Promise.NOTHING_LOST.broken_if(
        "ETag does not change with the state",
        _CONDITIONS["etag_of"].drop("content.encode()"),
        _EDITORS,
    ),
    Promise.NOTHING_LOST.broken_if(
        "projects are made on the way to what they have",
        _GUARD["needs"].never("'project' in in_path and (not project_may_be_missing)"),
        *_PROJECTS,
    ),
    Promise.NOTHING_LOST.broken_if(
        "definitions make projects",
        _PUBLISHED["publish_workflow"].drop("await uow.projects.require(project)"),
        "tests/integration/api/definitions/test_workflows.py::"
        "test_a_dry_run_says_what_would_happen_and_stores_nothing",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a client is not told that history is gone",
        _EVENTS["_history_gone"].replace(
            "kept_behind if 0 < after < kept_behind else None", "None"
        ),
        "tests/integration/api/cluster/test_events.py::test_client_is_told_that_what_it_has_missed_is_gone",
    ),
)
