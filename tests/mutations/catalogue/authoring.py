"""Drafts, versions, names, archive, exchange: each check of them, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise, mutation

_ROUTES = "api/shoal/api/routes/workflows"
_SQL = "sql/shoal/sql/repositories/authoring"
_DRAFTS = "tests/integration/api/test_drafts.py::"
_LIFE = "tests/integration/api/test_workflow_life.py::"
_STORED = "tests/integration/sql/test_authoring.py::"
_MASTER = "tests/integration/master/test_workflow_life.py::"
_SWAPS = (
    "tests/integration/api/access/test_matrix.py::"
    "test_id_of_another_project_is_answered_as_one_that_nothing_has"
)
_WORKFLOW = "/projects/{project}/workflows/{name}"
_NO_WAY = (_LIFE + "test_no_way_to_publish_gets_past_the_grant_of_another_project",)
_NOTHING_STARTS = (_MASTER + "test_nothing_of_an_archived_workflow_starts_and_what_runs_goes_on",)


def _lost(name: str, file: str, change: tuple[str, str], *killers: str) -> Mutation:
    return mutation(name, Promise.NOTHING_LOST, file, change, killers)


def _open(name: str, file: str, change: tuple[str, str], *killers: str) -> Mutation:
    return mutation(name, Promise.AUTHORISED, file, change, killers)


MUTATIONS: tuple[Mutation, ...] = (
    _open(
        "a project that is copied from is not judged",
        "api/shoal/api/access/guard.py",
        ("for name in _read(values):", "for name in ():"),
        f"{_SWAPS}[POST {_WORKFLOW}/copy project]",
    ),
    _open(
        "plans, drafts, copies and imports need no grant",
        "api/shoal/api/operations/authoring/checking.py",
        ("return [*await _not_granted(uow, spec), ", "return ["),
        f"{_SWAPS}[POST {_WORKFLOW}/plan SUB_WORKFLOW]",
        f"{_SWAPS}[POST /projects/{{project}}/import MAP]",
        *_NO_WAY,
    ),
    _open(
        "a version is restored without the grants that it needs",
        f"{_ROUTES}/versions.py",
        ("        await require_grants(uow, spec)\n", ""),
        *_NO_WAY,
    ),
    _open(
        "the map of dependencies shows what is hidden",
        f"{_SQL}/references.py",
        (
            "            if visible is None or row.project_id in visible:\n"
            "                name = row.project, row.name",
            "            if True:\n                name = row.project, row.name",
        ),
        "tests/integration/api/views/test_dependencies.py::"
        "test_what_is_hidden_has_no_runs_and_no_names_of_its_own",
    ),
    _open(
        "the queue names tasks of projects that are hidden",
        "api/shoal/api/routes/views/queue.py",
        ("for one in some], caller.visible)", "for one in some])"),
        "tests/integration/api/views/test_queue.py::test_what_is_hidden_counts_and_says_no_names",
    ),
    _open(
        "who names a workflow is told of projects that are hidden",
        f"{_SQL}/references.py",
        (
            "if visible is None or row.project_id in visible:\n                seen +=",
            "if True:\n                seen +=",
        ),
        _STORED + "test_who_names_a_workflow_is_found_and_hidden_from_those_who_may_not_see",
    ),
    _lost(
        "a draft is saved over one that was not seen",
        f"{_ROUTES}/drafts.py",
        (
            "await condition.strictly().check(lambda: _stored(uow, project, name, editor), body)",
            "pass",
        ),
        _DRAFTS + "test_two_windows_that_save_at_once_never_lose_an_edit",
    ),
    _lost(
        "places of tasks are stored over some that were not seen",
        f"{_ROUTES}/layouts.py",
        ("await condition.strictly().check(lambda: _stored(uow, found.id, name), body)", "pass"),
        "tests/integration/api/test_layouts.py::test_nobody_writes_over_places_that_were_not_seen",
    ),
    _lost(
        "a draft is published over a version that was not seen",
        f"{_ROUTES}/drafts.py",
        ("        await _require_base(uow, draft)\n", ""),
        _DRAFTS + "test_two_editors_of_one_workflow_lose_nothing",
    ),
    _lost(
        "a draft that has changed is written over",
        f"{_SQL}/drafts.py",
        (
            "draft.c.revision == found.revision)\n            .values",
            "draft.c.id > 0)\n            .values",
        ),
        _STORED + "test_a_draft_is_changed_only_as_it_was_found",
    ),
    _lost(
        "If-Match of a definition is ignored",
        f"{_ROUTES}/published.py",
        (
            "        await condition.check(\n            lambda: detail_of(uow, project, name), "
            '{"definition": wanted}, tag_of=tag_of\n        )\n',
            "",
        ),
        _DRAFTS + "test_publishing_with_an_old_etag_tells_what_has_changed",
    ),
    _lost(
        "a copy is published over a workflow that is there",
        f"{_ROUTES}/lifecycle.py",
        ("            raise WorkflowExists(project, name)", "            pass"),
        _LIFE + "test_a_copy_says_the_same_of_itself_and_changes_nothing_that_is_there",
    ),
    _lost(
        "a workflow is renamed under those that name it",
        f"{_ROUTES}/lifecycle.py",
        ('not dry_run and "references" not in body.despite:', "False:"),
        _LIFE + "test_renaming_leaves_no_name_dangling_unasked",
    ),
    _lost(
        "a workflow is deleted under those that name it",
        f"{_ROUTES}/lifecycle.py",
        ("        if seen or hidden or backfills:", "        if False:"),
        _LIFE + "test_deleting_shows_what_hangs_on_it_and_asks",
    ),
    _lost(
        "half of an import is stored",
        f"{_ROUTES}/exchange.py",
        ("        if not dry_run and not refused:", "        if not dry_run:"),
        "tests/integration/api/test_exchange.py::"
        "test_an_import_is_all_or_nothing_with_a_reason_for_each",
    ),
    mutation(
        "what is archived is started",
        Promise.RUNS_STAY,
        "master/shoal/master/services/definitions.py",
        ("        self.require_in_use(workflow_id)\n", ""),
        _NOTHING_STARTS,
    ),
    mutation(
        "what is archived runs again",
        Promise.RUNS_STAY,
        "master/shoal/master/services/scan.py",
        ("            definitions.require_in_use(source.workflow_id)\n", ""),
        _NOTHING_STARTS,
    ),
    mutation(
        "schedules of an archived workflow fire",
        Promise.RUNS_STAY,
        f"{_SQL}/lifecycle.py",
        ("            await self._schedules.suspend(found.id)\n", ""),
        (_STORED + "test_an_archived_workflow_has_no_fire_times_until_it_is_taken_out",),
    ),
    mutation(
        "publishing resumes a schedule",
        Promise.RUNS_STAY,
        "sql/shoal/sql/repositories/definitions/schedules.py",
        ("        if stored.paused_at is None and changed.keys()", "        if changed.keys()"),
        (_STORED + "test_a_paused_schedule_stays_paused_whatever_is_published",),
    ),
    mutation(
        "logs are looked for under the name of today",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/logs.py",
        ("            workflow=name,\n", "            workflow=task.workflow,\n"),
        (
            "tests/integration/client/test_authoring_commands.py::"
            "test_renamed_workflow_keeps_its_runs_and_their_logs",
        ),
    ),
)
