"""What projects may use of the cluster and of each other: each check, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SQL = "sql/shoal/sql/repositories"
_STORED = "tests/integration/sql/test_restrictions.py::"
_API = "tests/integration/api/test_restrictions.py::"
_BACKFILL = "master/shoal/master/callers.py"
_CALLERS = "tests/integration/master/test_backfill_callers.py::"
_FILES = "tests/integration/api/test_resources.py::"
_GRANTS = "tests/integration/api/test_grants.py::"
_PAYLOADS = "tests/integration/master/test_resources.py::"
_MASTER = "tests/integration/master/test_restrictions.py::"


def _open(name: str, file: str, change: tuple[str, str], *killers: str) -> Mutation:
    return mutation(name, Promise.AUTHORISED, file, change, killers)


MUTATIONS: tuple[Mutation, ...] = (
    _open(
        "a definition names files that another project does not share",
        "api/shoal/api/operations/authoring/checking.py",
        (", *await _not_shared(uow, spec)]", "]"),
        _GRANTS + "test_files_of_another_project_are_named_as_far_as_it_shares_them",
    ),
    _open(
        "a task gets files that another project does not share",
        "master/shoal/master/dispatch/resources.py",
        ("if home == project or is_shared(", "if home or is_shared("),
        _PAYLOADS + "test_files_of_another_project_come_as_far_as_it_shares_them[sqlite]",
        _PAYLOADS + "test_what_a_project_shares_and_nobody_can_read_is_not_shared[sqlite]",
    ),
    _open(
        "the state of the cluster tells everybody its hosts",
        "api/shoal/api/routes/health.py",
        ("    if caller.may(Permission.CLUSTER_READ):\n", "    if caller:\n"),
        "tests/integration/api/test_cluster.py::"
        "test_others_than_administrators_are_told_that_and_not_why",
    ),
    mutation(
        "a file is stored over one that was not seen",
        Promise.NOTHING_LOST,
        "api/shoal/api/operations/resources.py",
        ("                    await check(uow)\n", "                    pass\n"),
        (_FILES + "test_second_of_two_editors_of_a_file_is_told_what_is_there_now",),
    ),
    mutation(
        "a file is deleted that was not seen",
        Promise.NOTHING_LOST,
        "api/shoal/api/routes/resources.py",
        (
            "            await condition.check(lambda: _newest(uow, project, name), tag_of=_tag)\n",
            "            pass\n",
        ),
        (_FILES + "test_second_of_two_editors_of_a_file_is_told_what_is_there_now",),
    ),
    _open(
        "a definition names a worker group of other projects",
        f"{_SQL}/definitions/workflows.py",
        ("            self._restrictions.require,\n", ""),
        _API + "test_definition_with_a_worker_group_of_others_is_refused_where_it_says_so",
    ),
    _open(
        "a task runs on workers of other projects",
        "master/shoal/master/dispatch/making.py",
        ("        await self._groups.require(project, spec.worker_group)\n", ""),
        _MASTER + "test_payload_leaves_for_no_worker_group_of_other_projects[sqlite]",
        _MASTER + "test_task_whose_project_has_lost_its_worker_group_fails_with_the_reason[sqlite]",
    ),
    _open(
        "a master never reads restrictions again",
        "master/shoal/master/dispatch/worker_groups.py",
        ("is not None and now - self._read_at < GOOD_FOR_S", "is not None or now < 0"),
        _MASTER + "test_payload_leaves_for_no_worker_group_of_other_projects[sqlite]",
    ),
    _open(
        "a data source is tried on workers of other projects",
        "api/shoal/api/routes/data_sources.py",
        ("    if closed:\n", "    if False:\n"),
        _API + "test_nobody_tries_a_data_source_from_workers_of_others",
    ),
    _open(
        "a definition names an environment of other projects",
        f"{_SQL}/definitions/environments.py",
        ("await self._held(names - closed)", "await self._held(names)"),
        _STORED + "test_environment_of_others_is_as_one_that_there_is_not[sqlite]",
    ),
    _open(
        "a hint names an environment of other projects",
        f"{_SQL}/definitions/environments.py",
        ("if home in restricted.get(name, {home})]", "if restricted is not None]"),
        _STORED + "test_environment_of_others_is_as_one_that_there_is_not[sqlite]",
    ),
    _open(
        "a task runs in an environment of other projects",
        f"{_SQL}/definitions/environments.py",
        ("(row.restricted is None or home in _named_in(row.projects))", "(row.id is not None)"),
        _MASTER + "test_environment_of_other_projects_is_answered_as_none[sqlite]",
    ),
    _open(
        "environments of other projects are listed",
        "api/shoal/api/routes/environments.py",
        ("limit + 1, caller.visible)", "limit + 1, None)"),
        _API + "test_environment_of_others_is_answered_as_one_that_there_is_not",
    ),
    _open(
        "an environment of other projects is shown",
        "api/shoal/api/routes/environments.py",
        ("get_visible(name, caller.visible)", "get_visible(name, None)"),
        _API + "test_environment_of_others_is_answered_as_one_that_there_is_not",
    ),
    _open(
        "a restriction that cannot be read allows everything",
        f"{_SQL}/access/restrictions.py",
        (
            "return frozenset(row.name for row in rows if home not in found.get(row.name, ()))",
            "return frozenset(name for name, whose in found.items() if home not in whose)",
        ),
        _STORED + "test_one_that_cannot_be_read_allows_nothing[sqlite]",
    ),
    _open(
        "a backfill goes downstream where nobody lets it see",
        f"{_SQL}/definitions/backfill_planning.py",
        ("for other in others if (key[0], other[0]) in given]", "for other in others if key]"),
        _CALLERS + "test_a_grant_that_is_gone_when_the_master_plans_leaves_the_project_out[sqlite]",
    ),
    _open(
        "a backfill is planned with the rights of when it was asked for",
        _BACKFILL,
        ("    await require_rights(uow, command, {one for one in homes if one is not None})\n", ""),
        _CALLERS + "test_rights_that_are_gone_when_the_master_plans_are_not_used",
    ),
    _open(
        "a backfill reaches projects beyond the limits of the token",
        _BACKFILL,
        ("    if not homes <= {*judged}:", "    if False:"),
        _CALLERS + "test_a_project_that_the_api_has_not_judged_is_not_reached[sqlite]",
    ),
    _open(
        "a disabled account moves backfills",
        f"{_SQL}/access/rights.py",
        (
            "                principal.c.id == principal_id, principal.c.disabled_at.is_(None)\n",
            "                principal.c.id == principal_id\n",
        ),
        _CALLERS + "test_requests_about_it_need_the_rights_of_that_moment",
    ),
    _open(
        "a request about a backfill is carried out with rights of before",
        "master/shoal/master/services/backfills.py",
        (
            "            await require_rights("
            "uow, command, await uow.backfills.project_ids(before.id))\n",
            "",
        ),
        _CALLERS + "test_requests_about_it_need_the_rights_of_that_moment",
    ),
)
