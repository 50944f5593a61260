"""Drafts, versions, names, archive, exchange: each check of them, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_GUARD = Place("shoal.api.endpoints.guard")
_CHECKING = Place("shoal.api.operations.authoring.checks")
_VERSIONS = Place("shoal.api.routes.workflows.versions")
_REFERENCES = Place("shoal.sql.repositories.authoring.references")
_QUEUE = Place("shoal.api.routes.views.queue")
_WORKFLOWS_DRAFTS = Place("shoal.api.routes.workflows.drafts")
_LAYOUTS = Place("shoal.api.routes.workflows.layouts")
_AUTHORING_DRAFTS = Place("shoal.sql.repositories.authoring.drafts")
_PUBLISHED = Place("shoal.api.routes.workflows.published")
_LIFECYCLE = Place("shoal.api.routes.workflows.lifecycle")
_EXCHANGE = Place("shoal.api.routes.workflows.exchange")
_DEFINITIONS = Place("shoal.master.services.commands.starts")
_SCAN = Place("shoal.master.services.commands.starts")
_AUTHORING_LIFECYCLE = Place("shoal.sql.repositories.authoring.lifecycle")
_SCHEDULES = Place("shoal.sql.repositories.definitions.schedules")
_LOGS = Place("shoal.api.operations.logs")
_LIFE = "tests/integration/api/definitions/test_workflow_life.py::"
_NO_WAY = _LIFE + "test_no_way_to_publish_gets_past_the_grant_of_another_project"
_MASTER = "tests/integration/master/services/test_workflow_life.py::"
_NOTHING_STARTS = _MASTER + "test_nothing_of_an_archived_workflow_starts_and_what_runs_goes_on"
_SWAPS = (
    "tests/integration/api/access/test_matrix.py::"
    "test_id_of_another_project_is_answered_as_one_that_nothing_has"
)
_STORED = "tests/integration/sql/definitions/test_authoring.py::"
_DRAFTS = "tests/integration/api/definitions/test_drafts.py::"
_TEST_MATRIX = "tests/integration/api/access/test_matrix.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "a project that is copied from is not judged",
        _GUARD["needs"].replace("_read(values)", "()"),
        f"{_SWAPS}[POST /projects/{{project}}/workflows/{{name}}/copy project]",
    ),
    Promise.AUTHORISED.broken_if(
        "plans, drafts, copies and imports need no grant",
        _CHECKING["problems_there"].drop("*await _not_granted(uow, spec)"),
        f"{_SWAPS}[POST /projects/{{project}}/workflows/{{name}}/plan SUB_WORKFLOW]",
        f"{_SWAPS}[POST /projects/{{project}}/import MAP]",
        _NO_WAY,
    ),
    Promise.AUTHORISED.broken_if(
        "a version is restored without the grants that it needs",
        _VERSIONS["restore_version"].drop("await require_grants(uow, spec)"),
        _NO_WAY,
    ),
    Promise.AUTHORISED.broken_if(
        "the map of dependencies shows what is hidden",
        _REFERENCES["all"].always("visible is None or row.project_id in visible"),
        "tests/integration/api/views/test_dependencies.py::"
        "test_what_is_hidden_has_no_runs_and_no_names_of_its_own",
    ),
    Promise.AUTHORISED.broken_if(
        "the queue names tasks of projects that are hidden",
        _QUEUE["list_queue_entries"].drop("caller.visible"),
        "tests/integration/api/views/test_queue.py::test_what_is_hidden_counts_and_says_no_names",
    ),
    Promise.AUTHORISED.broken_if(
        "who names a workflow is told of projects that are hidden",
        _REFERENCES["to"].always("visible is None or row.project_id in visible"),
        f"{_STORED}test_who_names_a_workflow_is_found_and_hidden_from_those_who_may_not_see",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a draft is saved over one that was not seen",
        _WORKFLOWS_DRAFTS["put_draft"].drop("await condition.strictly().check(...)"),
        f"{_DRAFTS}test_two_windows_that_save_at_once_never_lose_an_edit",
    ),
    Promise.NOTHING_LOST.broken_if(
        "places of tasks are stored over some that were not seen",
        _LAYOUTS["put_layout"].drop("await condition.strictly().check(...)"),
        "tests/integration/api/definitions/test_layouts.py::test_nobody_writes_over_places_that_were_not_seen",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a draft is published over a version that was not seen",
        _WORKFLOWS_DRAFTS["publish_draft"].drop("await _require_base(...)"),
        f"{_DRAFTS}test_two_editors_of_one_workflow_lose_nothing",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a draft that has changed is written over",
        _AUTHORING_DRAFTS["change"].replace("draft.c.revision == found.revision", "draft.c.id > 0"),
        f"{_STORED}test_a_draft_is_changed_only_as_it_was_found",
    ),
    Promise.NOTHING_LOST.broken_if(
        "If-Match of a definition is ignored",
        _PUBLISHED["publish_workflow"].drop("await condition.check(...)"),
        f"{_DRAFTS}test_publishing_with_an_old_etag_tells_what_has_changed",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a copy is published over a workflow that is there",
        _LIFECYCLE["copy_workflow"].drop("raise WorkflowExists(...)"),
        f"{_LIFE}test_a_copy_says_the_same_of_itself_and_changes_nothing_that_is_there",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a workflow is renamed under those that name it",
        _LIFECYCLE["rename_workflow"].replace(
            "(left.seen or left.hidden) and (not dry_run) and ('references' not in body.despite)",
            "(left.seen or left.hidden) and False",
        ),
        f"{_LIFE}test_renaming_leaves_no_name_dangling_unasked",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a workflow is deleted under those that name it",
        _LIFECYCLE["delete_workflow"].never("seen or hidden or backfills"),
        f"{_LIFE}test_deleting_shows_what_hangs_on_it_and_asks",
    ),
    Promise.NOTHING_LOST.broken_if(
        "half of an import is stored",
        _EXCHANGE["import_project"].drop("not refused"),
        "tests/integration/api/definitions/test_exchange.py::"
        "test_an_import_is_all_or_nothing_with_a_reason_for_each",
    ),
    Promise.RUNS_STAY.broken_if(
        "what is archived is started",
        _DEFINITIONS["version"].drop("self.require_in_use(...)"),
        _NOTHING_STARTS,
    ),
    Promise.RUNS_STAY.broken_if(
        "what is archived runs again",
        _SCAN["_new_instance"].drop("definitions.require_in_use(...)"),
        _NOTHING_STARTS,
    ),
    Promise.RUNS_STAY.broken_if(
        "schedules of an archived workflow fire",
        _AUTHORING_LIFECYCLE["archive"].drop("await self._schedules.suspend(found.id)"),
        f"{_STORED}test_an_archived_workflow_has_no_fire_times_until_it_is_taken_out",
    ),
    Promise.RUNS_STAY.broken_if(
        "publishing resumes a schedule",
        _SCHEDULES["changes"].drop("stored.paused_at is None"),
        f"{_STORED}test_a_paused_schedule_stays_paused_whatever_is_published",
    ),
    Promise.NOTHING_LOST.broken_if(
        "logs are looked for under the name of today",
        _LOGS["_ref"].replace("workflow=name", "workflow=task.workflow"),
        "tests/integration/client/workflows/test_authoring_commands.py::"
        "test_renamed_workflow_keeps_its_runs_and_their_logs",
    ),
)
