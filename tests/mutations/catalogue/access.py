"""Who may do what: each check of a caller, a credential or a page, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise, mutation

_API = "api/shoal/api"
_ACCESS = f"{_API}/access"
_SQL = "sql/shoal/sql/repositories"
_TESTS = "tests/integration/api/access"
_MATRIX = f"{_TESTS}/test_matrix.py::"
_REFUSALS = (_MATRIX + "test_refusals_have_the_right_status_and_change_and_tell_nothing",)
_LISTS = (_MATRIX + "test_lists_show_what_the_caller_sees_and_no_more",)
_SWAPS = (_MATRIX + "test_id_of_another_project_is_answered_as_one_that_nothing_has",)
_BACKFILL = (_MATRIX + "test_backfill_that_reaches_another_project_needs_that_one_too",)
_COUNTS = (_MATRIX + "test_counts_count_what_the_caller_sees_and_no_more",)
_BULK = "tests/integration/api/test_bulk.py::"
_SEARCH = (
    "tests/integration/sql/test_searches.py::test_filters_find_what_a_plain_loop_finds[sqlite]"
)
_STREAMS = (_MATRIX + "test_streams_carry_what_the_caller_sees_and_no_more",)
_OF_OTHERS = (_MATRIX + "test_credentials_of_others_are_as_good_as_missing",)
_LOGIN = f"{_TESTS}/test_login.py::"
_IDENTITIES = f"{_TESTS}/test_identities.py::"
_LIMITS = f"{_TESTS}/test_limits.py"
_JUDGE = "tests/unit/core/test_access.py::"
_BOTH = "tests/integration/sql/test_access.py::"


def _lost(name: str, file: str, change: tuple[str, str], killers: tuple[str, ...]) -> Mutation:
    return mutation(name, Promise.AUTHORISED, file, change, killers)


def _blind(name: str, module: str, change: tuple[str, str], path: str) -> Mutation:
    """A list shows what all projects have."""
    killers = (f"{_LISTS[0]}[{path}]",)
    return _lost(f"list of {name} shows all", f"{_API}/routes/{module}.py", change, killers)


_SEEN = ("limit, caller.visible)", "limit, None)")
_VISIBLE = ("visible=caller.visible", "visible=None")
_VISIBLE_FILTER = ('"visible": caller.visible', '"visible": None')

MUTATIONS: tuple[Mutation, ...] = (
    _lost(
        "things of a path are not judged",
        f"{_ACCESS}/guard.py",
        ("            yield in_path[name], value", "            continue"),
        _REFUSALS,
    ),
    _lost(
        "things of a body are not judged",
        f"{_ACCESS}/guard.py",
        ("            yield from value.things()", "            continue"),
        _SWAPS,
    ),
    _lost(
        "permissions of the platform are not judged",
        f"{_ACCESS}/guard.py",
        ("                caller.require_of_platform(permission)", "                pass"),
        _REFUSALS,
    ),
    _lost(
        "instance of a command is not judged",
        f"{_API}/schemas/commands.py",
        ("            yield Thing.INSTANCE, self.instance_id", "            pass"),
        _SWAPS,
    ),
    _lost(
        "task instance of a command is not judged",
        f"{_API}/schemas/commands.py",
        ("            yield Thing.TASK_INSTANCE, self.task_instance_id", "            pass"),
        _SWAPS,
    ),
    _lost(
        "calendar of a preview is not judged",
        f"{_API}/schemas/schedules.py",
        (
            "        if self.calendar is not None:\n            yield",
            "        if False:\n            yield",
        ),
        _SWAPS,
    ),
    _lost(
        "a definition needs no grant of the projects that it names",
        f"{_API}/routes/workflows/published.py",
        ("        await require_grants(uow, spec)\n", ""),
        _SWAPS,
    ),
    _lost(
        "a sub-workflow needs no grant when it runs",
        "master/shoal/master/engine/messages.py",
        (
            ":= sender.run.plan.spec.project) not in given:",
            ":= sender.run.plan.spec.project) in ():",
        ),
        (
            "tests/integration/master/test_children.py::"
            "test_workflow_of_another_project_runs_only_if_that_lets_it[SUB_WORKFLOW]",
        ),
    ),
    _lost(
        "runs of other projects are seen without a grant",
        "master/shoal/master/services/dependencies.py",
        ("runs if (name[0], project) in self.given else None", "runs"),
        (
            "tests/integration/master/test_grants.py::"
            "test_runs_of_another_project_are_as_if_they_were_not_until_it_lets_them_be_seen[sqlite]",
        ),
    ),
    _lost(
        "idempotency keys of callers meet",
        f"{_SQL}/runs/commands.py",
        ("return key if caller_id is None else", "return key if caller_id is caller_id else"),
        ("tests/integration/sql/test_commands.py::test_keys_of_callers_do_not_meet[sqlite]",),
    ),
    _lost(
        "a token with limits gives rights",
        "core/shoal/core/access/judging.py",
        ("    if permission in GIVES_RIGHTS:\n        return scope.permissions is None\n", ""),
        (f"{_LIMITS}::test_token_that_is_limited_to_permissions_gives_no_rights",),
    ),
    _lost(
        "a token with limits changes its account",
        f"{_API}/routes/access/account.py",
        ("    if who.scope != EVERYTHING:\n", "    if False:\n"),
        (f"{_LIMITS}::test_token_with_limits_changes_nothing_of_its_account",),
    ),
    _lost(
        "what is hidden is forbidden",
        f"{_ACCESS}/callers.py",
        (
            "        if verdict is Verdict.HIDDEN:\n            raise NotFound(thing, key)",
            "        if verdict is Verdict.HIDDEN:\n            raise Forbidden(f'{thing} {key}')",
        ),
        _REFUSALS,
    ),
    _lost(
        "plan of a backfill is not judged",
        f"{_API}/routes/backfills.py",
        (
            "        require_all(caller, homes)\n",
            "        require_all(caller, ())\n",
        ),
        _BACKFILL,
    ),
    _lost(
        "backfill is controlled from one of its projects",
        f"{_API}/routes/backfills.py",
        ("    require_all(caller, projects)\n", ""),
        _BACKFILL,
    ),
    _lost(
        "runs of a backfill show all projects",
        f"{_API}/routes/backfills.py",
        ("            limit + 1,\n            caller.visible,", "            limit + 1,"),
        _BACKFILL,
    ),
    _blind("projects", "projects", _VISIBLE, "/projects"),
    _blind("workflows", "workflows/published", _VISIBLE_FILTER, "/workflows"),
    _blind(
        "schedules",
        "schedules",
        ("limit + 1, visible=caller.visible", "limit + 1, visible=None"),
        "/schedules",
    ),
    _lost(
        "all schedules of a hidden project are paused",
        f"{_API}/routes/schedules.py",
        ("await caller.require(Permission.RUN_OPERATE, Thing.SCHEDULE, one)", "pass"),
        (
            "tests/integration/api/test_bulk_schedules.py::"
            "test_each_is_authorised_by_itself_and_is_in_the_audit",
        ),
    ),
    _lost(
        "drafts are rendered for readers",
        f"{_API}/routes/runs/planning.py",
        (
            "await caller.require(Permission.PROJECT_EDIT, Thing.PROJECT, body.project)",
            "pass",
        ),
        (
            "tests/integration/api/test_planning.py::"
            "test_texts_are_previewed_by_those_who_may_publish_them",
        ),
    ),
    _blind("instances", "runs/instances", _SEEN, "/instances"),
    _blind("task instances", "runs/tasks", _SEEN, "/task-instances"),
    _lost(
        "counts of instances count all",
        f"{_API}/routes/runs/counts.py",
        (
            "uow.instances.counted(wanted, caller.visible)",
            "uow.instances.counted(wanted, None)",
        ),
        _COUNTS,
    ),
    _lost(
        "counts of task instances count all",
        f"{_API}/routes/runs/counts.py",
        ("uow.tasks.counted(wanted, caller.visible)", "uow.tasks.counted(wanted, None)"),
        _COUNTS,
    ),
    _lost(
        "sifted instances are of all projects",
        f"{_SQL}/search/instances.py",
        ("within = [] if home is None else [home.condition()]", "within: Conditions = []"),
        (_SEARCH,),
    ),
    _lost(
        "lists by schedule, backfill and label are of all projects",
        f"{_SQL}/search/instances.py",
        ("within = [] if home is None else [home.condition()]", "within: list[Any] = []"),
        (_SEARCH,),
    ),
    _lost(
        "each of many is not judged",
        f"{_API}/operations/runs/bulk.py",
        ("                await caller.require(Permission.RUN_OPERATE, thing, one)\n", ""),
        (_BULK + "test_each_is_authorised_by_itself",),
    ),
    _lost(
        "bulk does more than its preview has shown",
        f"{_API}/routes/runs/bulk.py",
        ("    if body.digest not in (None, digest):", "    if False:"),
        (_BULK + "test_filters_do_exactly_what_their_preview_has_shown",),
    ),
    _lost(
        "bulk by filter needs no preview",
        f"{_API}/routes/runs/bulk.py",
        (
            "    elif body.ids is None and not dry_run and body.digest is None:",
            "    elif False:",
        ),
        (_BULK + "test_filters_do_exactly_what_their_preview_has_shown",),
    ),
    _lost(
        "cursor goes with other filters",
        f"{_API}/routes/runs/filters.py",
        ("json.dumps([type(wanted).__name__, fields, asdict(order)]", "json.dumps([1]"),
        ("tests/integration/api/test_listing.py::test_cursor_belongs_to_its_filters_and_order",),
    ),
    _blind("backfills", "backfills", _VISIBLE, "/backfills"),
    _lost(
        "filter by project shows a hidden one",
        f"{_SQL}/search/scope.py",
        (
            "ids = [row.id for row in rows if visible is None or row.id in visible]",
            "ids = [row.id for row in rows]",
        ),
        (f"{_LISTS[0]}[/instances]",),
    ),
    _lost(
        "filter by workflow shows hidden projects",
        f"{_SQL}/search/scope.py",
        (
            "ids = [row.id for row in rows if visible is None or row.project_id in visible]",
            "ids = [row.id for row in rows]",
        ),
        (f"{_LISTS[0]}[/instances]",),
    ),
    _lost(
        "open log goes on without rights",
        f"{_ACCESS}/callers.py",
        (
            "judge(who, Permission.PROJECT_READ, project) is Verdict.ALLOWED,",
            "True,",
        ),
        (f"{_TESTS}/test_streams.py::test_stream_ends_with_the_rights_to_it[log-_role]",),
    ),
    _lost(
        "stream carries events of all projects",
        f"{_API}/routes/events.py",
        ("and (self.visible is None or event.project in self.visible)", "and True"),
        _STREAMS,
    ),
    _lost(
        "password need not be changed",
        "core/shoal/core/access/judging.py",
        (
            "if principal.must_change_password and permission is not Permission.SIGNED_IN:",
            "if False:",
        ),
        (_JUDGE + "test_what_is_visible_is_what_is_not_hidden",),
    ),
    _lost(
        "password need not be changed for lists",
        f"{_ACCESS}/guard.py",
        ("            caller.require_own_password(permission)", "            pass"),
        _REFUSALS,
    ),
    _lost(
        "scope does not limit permissions and projects",
        "core/shoal/core/access/judging.py",
        (
            "    if not (_covers(scope, permission) and",
            "    if False and not (_covers(scope, permission) and",
        ),
        (_JUDGE + "test_what_is_allowed_is_held_by_the_owner_and_within_the_scope",),
    ),
    _lost(
        "scope does not limit the platform",
        "core/shoal/core/access/judging.py",
        (
            "principal.is_admin and scope.is_of_platform and _covers(scope, permission)",
            "principal.is_admin",
        ),
        (_JUDGE + "test_what_is_allowed_is_held_by_the_owner_and_within_the_scope",),
    ),
    _lost(
        "scope does not limit what is visible",
        "core/shoal/core/access/judging.py",
        ("        return scope.projects", "        return None"),
        (_JUDGE + "test_what_is_visible_is_what_is_not_hidden",),
    ),
    _lost(
        "revoked tokens are good",
        f"{_SQL}/access/rights.py",
        ("                c.revoked_at.is_(None),\n", ""),
        (_IDENTITIES + "test_revoked_token_is_worthless_on_every_process",),
    ),
    _lost(
        "tokens do not expire",
        f"{_SQL}/access/rights.py",
        ("                or_(c.expires_at.is_(None), c.expires_at > at),\n", ""),
        (_BOTH + "test_rights_are_those_of_now",),
    ),
    _lost(
        "disabled accounts sign in with tokens",
        f"{_SQL}/access/rights.py",
        (
            "c.expires_at > at),\n                principal.c.disabled_at.is_(None),",
            "c.expires_at > at),",
        ),
        (_IDENTITIES + "test_disabled_account_is_nobody_and_enabled_again_somebody",),
    ),
    _lost(
        "disabled accounts keep sessions",
        f"{_SQL}/access/rights.py",
        (
            "c.used_at > used_after,\n                principal.c.disabled_at.is_(None),",
            "c.used_at > used_after,",
        ),
        (_IDENTITIES + "test_disabled_account_is_nobody_and_enabled_again_somebody",),
    ),
    _lost(
        "disabled accounts sign in with passwords",
        f"{_API}/operations/accounts.py",
        ("None if found is None or found.is_disabled else", "None if found is None else"),
        (_LOGIN + "test_unknown_name_wrong_password_and_disabled_account_read_the_same",),
    ),
    _lost(
        "sessions do not expire",
        f"{_SQL}/access/rights.py",
        (
            "                c.expires_at > at,\n                c.used_at",
            "                c.used_at",
        ),
        (_BOTH + "test_rights_are_those_of_now",),
    ),
    _lost(
        "idle sessions go on",
        f"{_SQL}/access/rights.py",
        ("                c.used_at > used_after,\n", ""),
        (_IDENTITIES + "test_session_that_is_not_used_ends",),
    ),
    _lost(
        "what is remembered does not expire",
        f"{_ACCESS}/identities.py",
        ("if found is None or self._is_over(found):", "if found is None:"),
        (_IDENTITIES + "test_credentials_expire_although_they_are_remembered",),
    ),
    _lost(
        "changes of rights are not looked at",
        f"{_ACCESS}/identities.py",
        (
            "        if version != self._version:\n            self._known.clear()",
            "        if True:",
        ),
        (_IDENTITIES + "test_revoked_token_is_worthless_on_every_process",),
    ),
    _lost(
        "an answer from before a change is remembered",
        f"{_ACCESS}/identities.py",
        ("        if self._version != version:", "        if False:"),
        (_IDENTITIES + "test_answer_from_before_a_change_is_not_remembered",),
    ),
    _lost(
        "streams go on without rights",
        f"{_ACCESS}/identities.py",
        ("                    watch.ended.set()", "                    pass"),
        (_IDENTITIES + "test_stream_is_told_when_its_credential_is_worthless",),
    ),
    _lost(
        "revoking a token of one's own changes no version",
        f"{_SQL}/access/credentials.py",
        (
            '"""Make a token of a principal worthless. Raises NotFound."""\n'
            "        await self._rights.changed()",
            '"""Make a token of a principal worthless. Raises NotFound."""',
        ),
        (_BOTH + "test_every_change_of_rights_is_a_new_version",),
    ),
    _lost(
        "sessions of others can be ended",
        f"{_SQL}/access/credentials.py",
        ("c.id == session_id, c.principal_id == principal_id", "c.id == session_id"),
        _OF_OTHERS,
    ),
    _lost(
        "tokens of others can be revoked",
        f"{_SQL}/access/credentials.py",
        (
            "c.id == token_id, c.principal_id == principal_id, c.revoked_at",
            "c.id == token_id, c.revoked_at",
        ),
        _OF_OTHERS,
    ),
    _lost(
        "sessions can be used from other sites",
        f"{_ACCESS}/authentication.py",
        ("        require_own_page(request)\n    return", "        pass\n    return"),
        (_LOGIN + "test_sessions_change_things_from_pages_of_ours_alone",),
    ),
    _lost(
        "other sites can sign a browser in",
        f"{_ACCESS}/authentication.py",
        (
            '"origin" in request.headers:\n        require_own_page(request)',
            '"origin" in request.headers:\n        pass',
        ),
        (_LOGIN + "test_sessions_change_things_from_pages_of_ours_alone",),
    ),
    _lost(
        "a token makes tokens",
        f"{_API}/routes/access/account.py",
        ("if caller.signed_in.session_id is None or caller", "if caller"),
        (_LOGIN + "test_token_makes_no_token",),
    ),
    _lost(
        "attempts that have no answer do not count",
        f"{_ACCESS}/attempts.py",
        ("        self._count(self._pairs, (name, address))\n", ""),
        (_LOGIN + "test_many_wrong_passwords_at_once_count",),
    ),
    _lost(
        "logins begin all at once",
        f"{_ACCESS}/pacing.py",
        ("            self._free_s = now_s + wait_s + _APART_S\n", ""),
        ("tests/unit/api/test_pacing.py::test_others_pass_while_logins_stand_in_a_row",),
    ),
    _lost(
        "everybody waits in the row of logins",
        f"{_ACCESS}/pacing.py",
        (" and _brings_a_password(scope):", ":"),
        ("tests/unit/api/test_pacing.py::test_others_pass_while_logins_stand_in_a_row",),
    ),
    _lost(
        "the row of logins has no end",
        f"{_ACCESS}/pacing.py",
        ("if wait_s > _LONGEST_S:", "if wait_s < 0:"),
        ("tests/unit/api/test_pacing.py::test_a_row_that_is_too_long_is_refused",),
    ),
    _lost(
        "another password leaves sessions",
        f"{_API}/routes/access/account.py",
        (
            "        await uow.sessions.end_all(principal_id, but=caller.signed_in.session_id)\n",
            "",
        ),
        (_LOGIN + "test_another_password_ends_the_other_sessions_and_the_tokens",),
    ),
    _lost(
        "the last administrator can be demoted",
        f"{_SQL}/access/principals.py",
        ("        if not count:\n            raise LastAdministrator", "        del count"),
        (_BOTH + "test_last_administrator_is_neither_disabled_nor_demoted",),
    ),
    _lost(
        "several first administrators are made",
        f"{_SQL}/access/principals.py",
        (
            "select(principal.c.id).limit(1)) is not None:\n            return False",
            "select(principal.c.id).limit(1)) is not None:\n            pass",
        ),
        (_BOTH + "test_of_several_first_administrators_one_is_made",),
    ),
)
