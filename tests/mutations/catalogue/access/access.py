"""Who may do what: each check of a caller, a credential or a page, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_GUARD = Place("shoal.api.endpoints.guard")
_COMMANDS = Place("shoal.api.schemas.commands")
_SCHEDULES = Place("shoal.api.schemas.schedules")
_PUBLISHED = Place("shoal.api.routes.workflows.published")
_MESSAGES = Place("shoal.master.engine.messages")
_DEPENDENCIES = Place("shoal.master.services.dependencies")
_RUNS_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_JUDGING = Place("shoal.core.access.authorization")
_ACCOUNT = Place("shoal.api.routes.access.account")
_CALLERS = Place("shoal.api.access.callers")
_BACKFILLS = Place("shoal.api.routes.backfills")
_PROJECTS = Place("shoal.api.routes.projects")
_ROUTES_SCHEDULES = Place("shoal.api.routes.schedules")
_PLANNING = Place("shoal.api.routes.runs.planning")
_INSTANCES = Place("shoal.api.routes.runs.instances")
_TASKS = Place("shoal.api.routes.runs.tasks")
_RUNS_COUNTS = Place("shoal.api.routes.runs.instances")
_SEARCH_INSTANCES = Place("shoal.sql.repositories.search.instances")
_RUNS_BULK = Place("shoal.api.operations.runs.bulk")
_ROUTES_RUNS_BULK = Place("shoal.api.routes.runs.bulk")
_FILTERS = Place("shoal.api.routes.runs.filters")
_SCOPE = Place("shoal.sql.repositories.search.scope")
_EVENTS = Place("shoal.api.routes.events")
_RIGHTS = Place("shoal.sql.repositories.access.rights")
_CONTROL = Place("shoal.api.access.control")
_ACCESS_IDENTITIES = Place("shoal.api.access.identities")
_CREDENTIALS = Place("shoal.sql.repositories.access.credentials")
_AUTHENTICATION = Place("shoal.api.access.authentication")
_ATTEMPTS = Place("shoal.api.access.failed_logins")
_PACING = Place("shoal.api.web.middleware")
_PRINCIPALS = Place("shoal.sql.repositories.access.principals")
_TESTS = "tests/integration/api/access"
_MATRIX = f"{_TESTS}/test_matrix.py::"
_REFUSALS = _MATRIX + "test_refusals_have_the_right_status_and_change_and_tell_nothing"
_SWAPS = _MATRIX + "test_id_of_another_project_is_answered_as_one_that_nothing_has"
_BACKFILL = _MATRIX + "test_backfill_that_reaches_another_project_needs_that_one_too"
_COUNTS = _MATRIX + "test_counts_count_what_the_caller_sees_and_no_more"
_STREAMS = _MATRIX + "test_streams_carry_what_the_caller_sees_and_no_more"
_OF_OTHERS = _MATRIX + "test_credentials_of_others_are_as_good_as_missing"
_LIMITS = f"{_TESTS}/test_limits.py"
_SEARCH = (
    "tests/integration/sql/runs/test_searches.py::test_filters_find_what_a_plain_loop_finds[sqlite]"
)
_BULK = "tests/integration/api/runs/test_bulk.py::"
_JUDGE = "tests/unit/core/access/test_access.py::"
_IDENTITIES = f"{_TESTS}/test_identities.py::"
_BOTH = "tests/integration/sql/access/test_access.py::"
_LOGIN = f"{_TESTS}/test_login.py::"
_COMMAND_ROUTES = Place("shoal.api.routes.commands")
_EXCHANGE = Place("shoal.client.rest.operations.exchange")
_SERVER = Place("shoal.api.server")
_CONNECTIONS = Place("shoal.api.web.connections")
_SSE = Place("shoal.api.web.sse")
_TEST_CONNECTIONS = "tests/unit/api/test_connections.py::"
_TEST_CALLER_LIMITS = "tests/integration/api/web/test_caller_limits.py::"
_TEST_PACING = "tests/unit/api/test_pacing.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "an API that is starting counts as gone",
        _EXCHANGE["steps"].never("not self._reached and starting_s"),
        "tests/unit/client/sdk/test_exchange.py::"
        "test_api_that_is_starting_is_waited_for_whatever_is_asked",
    ),
    Promise.PROGRESS.broken_if(
        "half a request has no deadline",
        _CONNECTIONS["_await_head"].replace("self.loop.time() + HEAD_S", "inf"),
        _TEST_CONNECTIONS + "test_half_a_request_is_given_up_at_its_deadline",
    ),
    Promise.PROGRESS.broken_if(
        "TLS connections without a handshake take all descriptors",
        Place("shoal.api.web.tls_handshake")["connection_made"].replace(
            "connections.admit(self, self._peer) or connections.admit_refusal(self)", "True"
        ),
        _TEST_CONNECTIONS
        + "test_unfinished_handshakes_count_and_make_room_for_others_of_their_address",
    ),
    Promise.PROGRESS.broken_if(
        "a TLS connection that found room later counts as a refusal for good",
        _CONNECTIONS["connection_made"].replace("self._all.drop_refusal(self.handshake)", "pass"),
        _TEST_CONNECTIONS
        + "test_connection_that_finds_room_during_its_handshake_is_no_longer_a_refusal",
    ),
    Promise.PROGRESS.broken_if(
        "a client that does not read keeps its connection",
        _CONNECTIONS["_await_reads"].replace(
            "self._write_deadline_s = now_s + WRITE_S", "self._write_deadline_s = inf"
        ),
        _TEST_CONNECTIONS + "test_client_that_does_not_read_is_cut_off",
    ),
    Promise.PROGRESS.broken_if(
        "a client that reads slowly loses its connection",
        _CONNECTIONS["_await_reads"].replace("taken / BYTES_PER_S", "0"),
        _TEST_CONNECTIONS + "test_client_that_reads_slowly_gets_all_of_a_large_answer",
    ),
    Promise.PROGRESS.broken_if(
        "the handshake of TLS has no deadline",
        _SERVER["startup"].replace("handshake_s=HEAD_S", "handshake_s=3600.0"),
        _TEST_CONNECTIONS + "test_client_that_does_not_begin_tls_is_cut_off",
    ),
    Promise.PROGRESS.broken_if(
        "a full process closes idle connections of one address alone",
        _CONNECTIONS["_close_idle_of_any"].replace(
            "any(self._close_idle(connections) for connections in by_size)",
            "self._close_idle(by_size[0])",
        ),
        _TEST_CONNECTIONS + "test_process_at_its_limit_closes_an_idle_connection_of_any_address",
    ),
    Promise.PROGRESS.broken_if(
        "idle connections keep out new ones",
        _CONNECTIONS["admit"].replace("is_full and not self._close_idle(own)", "is_full"),
        _TEST_CONNECTIONS + "test_idle_connections_make_room_for_new_ones_of_their_address",
    ),
    Promise.PROGRESS.broken_if(
        "a caller may have any number of event streams",
        _SSE["Streams"].replace("len(streams) >= self._per_caller", "False"),
        _TEST_CALLER_LIMITS
        + "test_caller_with_too_many_streams_gets_no_other_and_everybody_else_does",
    ),
    Promise.PROGRESS.broken_if(
        "a caller may send any number of commands",
        _COMMAND_ROUTES["post_command"].drop("intake.begin(...)"),
        _TEST_CALLER_LIMITS + "test_caller_with_too_many_commands_waits_and_nobody_else_does",
    ),
    Promise.AUTHORISED.broken_if(
        "a client behind any proxy chooses the address that limits count",
        Place("shoal.api.web.forwarded")["behind_proxies"].replace(
            'named[-1].rpartition(b",")[2]', 'named[0].partition(b",")[0]'
        ),
        "tests/unit/api/test_forwarded.py::test_client_cannot_name_its_own_address",
    ),
    Promise.PROGRESS.broken_if(
        "wrong passwords of others make a known name wait",
        _ATTEMPTS["begin"].replace("(name, address) not in self._signed_in", "True"),
        "tests/unit/api/test_failed_logins.py::"
        "test_name_that_signed_in_before_does_not_wait_for_others_at_its_address",
    ),
    Promise.AUTHORISED.broken_if(
        "things of a path are not judged",
        _GUARD["_things"].replace("yield (in_path[name], value)", "continue"),
        _REFUSALS,
    ),
    Promise.AUTHORISED.broken_if(
        "things of a body are not judged",
        _GUARD["_things"].replace("yield from value.things()", "continue"),
        _SWAPS,
    ),
    Promise.AUTHORISED.broken_if(
        "permissions of the platform are not judged",
        _GUARD["needs"].drop("caller.require_of_platform(...)"),
        _REFUSALS,
    ),
    Promise.AUTHORISED.broken_if(
        "instance of a command is not judged",
        _COMMANDS["things"].drop("yield (Thing.INSTANCE, self.instance_id)"),
        _SWAPS,
    ),
    Promise.AUTHORISED.broken_if(
        "task instance of a command is not judged",
        _COMMANDS["things"].drop("yield (Thing.TASK_INSTANCE, self.task_instance_id)"),
        _SWAPS,
    ),
    Promise.AUTHORISED.broken_if(
        "calendar of a preview is not judged",
        _SCHEDULES["things"].never("self.calendar is not None"),
        _SWAPS,
    ),
    Promise.AUTHORISED.broken_if(
        "a definition needs no grant of the projects that it names",
        _PUBLISHED["publish_workflow"].drop("await require_grants(uow, spec)"),
        _SWAPS,
    ),
    Promise.AUTHORISED.broken_if(
        "a sub-workflow needs no grant when it runs",
        _MESSAGES["_starts"].replace(
            "(start.project, (taker := sender.run.plan.spec.project)) not in given",
            "(start.project, (taker := sender.run.plan.spec.project)) in ()",
        ),
        "tests/integration/master/services/test_children.py::"
        "test_workflow_of_another_project_runs_only_if_that_lets_it[SUB_WORKFLOW]",
    ),
    Promise.AUTHORISED.broken_if(
        "runs of other projects are seen without a grant",
        _DEPENDENCIES["seen_from"].replace(
            "runs if (name[0], project) in self.given else None", "runs"
        ),
        "tests/integration/master/services/test_grants.py::"
        "test_runs_of_another_project_are_as_if_they_were_not_until_it_lets_them_be_seen[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "idempotency keys of callers meet",
        _RUNS_COMMANDS["caller_key"].replace("caller_id is None", "caller_id is caller_id"),
        "tests/integration/sql/runs/test_commands.py::test_keys_of_callers_do_not_meet[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a token with limits gives rights",
        _JUDGING["_covers"].drop("if permission in GIVES_RIGHTS:\n    ..."),
        f"{_LIMITS}::test_token_that_is_limited_to_permissions_gives_no_rights",
    ),
    Promise.AUTHORISED.broken_if(
        "a token with limits changes its account",
        _ACCOUNT["_own"].never("who.scope != EVERYTHING"),
        f"{_LIMITS}::test_token_with_limits_changes_nothing_of_its_account",
    ),
    Promise.AUTHORISED.broken_if(
        "what is hidden is forbidden",
        _CALLERS["require"].replace("NotFound(thing, key)", "Forbidden(f'{thing} {key}')"),
        _REFUSALS,
    ),
    Promise.AUTHORISED.broken_if(
        "plan of a backfill is not judged",
        _BACKFILLS["post_backfill"].replace(
            "require_all(caller, homes)", "require_all(caller, ())"
        ),
        _BACKFILL,
    ),
    Promise.AUTHORISED.broken_if(
        "backfill is controlled from one of its projects",
        _BACKFILLS["request_backfill"].drop("require_all(...)"),
        _BACKFILL,
    ),
    Promise.AUTHORISED.broken_if(
        "runs of a backfill show all projects",
        _BACKFILLS["list_backfill_runs"].drop("caller.visible"),
        _BACKFILL,
    ),
    Promise.AUTHORISED.broken_if(
        "list of projects shows all",
        _PROJECTS["list_projects"].replace("caller.visible", "None"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/projects]",
    ),
    Promise.AUTHORISED.broken_if(
        "list of workflows shows all",
        _PUBLISHED["list_workflows"].replace("visible = caller.visible", "visible = None"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/workflows]",
    ),
    Promise.AUTHORISED.broken_if(
        "list of schedules shows all",
        _ROUTES_SCHEDULES["list_schedules"].replace("caller.visible", "None"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/schedules]",
    ),
    Promise.AUTHORISED.broken_if(
        "all schedules of a hidden project are paused",
        _ROUTES_SCHEDULES["post_bulk_schedules"].drop("await caller.require(...)"),
        "tests/integration/api/runs/test_bulk_schedules.py::"
        "test_each_is_authorised_by_itself_and_is_in_the_audit",
    ),
    Promise.AUTHORISED.broken_if(
        "drafts are rendered for readers",
        _PLANNING["preview_start"].drop("await caller.require(...)"),
        "tests/integration/api/runs/test_planning.py::"
        "test_texts_are_previewed_by_those_who_may_publish_them",
    ),
    Promise.AUTHORISED.broken_if(
        "list of instances shows all",
        _INSTANCES["list_instances"].replace("caller.visible", "None"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/instances]",
    ),
    Promise.AUTHORISED.broken_if(
        "list of task instances shows all",
        _TASKS["list_task_instances"].replace("caller.visible", "None"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/task-instances]",
    ),
    Promise.AUTHORISED.broken_if(
        "counts of instances count all",
        _RUNS_COUNTS["count_instances"].replace("caller.visible", "None"),
        _COUNTS,
    ),
    Promise.AUTHORISED.broken_if(
        "counts of task instances count all",
        _RUNS_COUNTS["count_task_instances"].replace("caller.visible", "None"),
        _COUNTS,
    ),
    Promise.AUTHORISED.broken_if(
        "sifted instances are of all projects",
        _SEARCH_INSTANCES["_source"].replace("within = ...", "within: Conditions = []"),
        _SEARCH,
    ),
    Promise.AUTHORISED.broken_if(
        "lists by schedule, backfill and label are of all projects",
        _SEARCH_INSTANCES["_source"].replace("within = ...", "within: list[Any] = []"),
        _SEARCH,
    ),
    Promise.AUTHORISED.broken_if(
        "each of many is not judged",
        _RUNS_BULK["judged"].drop("await caller.require(...)"),
        f"{_BULK}test_each_is_authorised_by_itself",
    ),
    Promise.AUTHORISED.broken_if(
        "bulk does more than its preview has shown",
        _ROUTES_RUNS_BULK["post_bulk_commands"].never("body.digest not in (None, digest)"),
        f"{_BULK}test_filters_do_exactly_what_their_preview_has_shown",
    ),
    Promise.AUTHORISED.broken_if(
        "bulk by filter needs no preview",
        _ROUTES_RUNS_BULK["_check"].never(
            "body.ids is None and (not dry_run) and (body.digest is None)"
        ),
        f"{_BULK}test_filters_do_exactly_what_their_preview_has_shown",
    ),
    Promise.AUTHORISED.broken_if(
        "cursor goes with other filters",
        _FILTERS["_kind"].replace("filtered(type(wanted).__name__, wanted, order)", "'1'"),
        "tests/integration/api/runs/test_listing.py::test_cursor_belongs_to_its_filters_and_order",
    ),
    Promise.AUTHORISED.broken_if(
        "list of backfills shows all",
        _BACKFILLS["list_backfills"].replace("caller.visible", "None"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/backfills]",
    ),
    Promise.AUTHORISED.broken_if(
        "filter by project shows a hidden one",
        _SCOPE["scope"].drop("visible is None or row.id in visible"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/instances]",
    ),
    Promise.AUTHORISED.broken_if(
        "filter by workflow shows hidden projects",
        _SCOPE["scope"].drop("visible is None or row.project_id in visible"),
        f"{_MATRIX}test_lists_show_what_the_caller_sees_and_no_more[/instances]",
    ),
    Promise.AUTHORISED.broken_if(
        "open log goes on without rights",
        _CALLERS["while_reading"].always("judge(...) is AccessVerdict.ALLOWED"),
        f"{_TESTS}/test_streams.py::test_stream_ends_with_the_rights_to_it[log-_role]",
    ),
    Promise.AUTHORISED.broken_if(
        "stream carries events of all projects",
        _EVENTS["__call__"].always("self.visible is None or event.project in self.visible"),
        _STREAMS,
    ),
    Promise.AUTHORISED.broken_if(
        "password need not be changed",
        _JUDGING["judge"].never(
            "principal.must_change_password and permission is not Permission.SIGNED_IN"
        ),
        f"{_JUDGE}test_what_is_visible_is_what_is_not_hidden",
    ),
    Promise.AUTHORISED.broken_if(
        "password need not be changed for lists",
        _GUARD["needs"].drop("caller.require_own_password(...)"),
        _REFUSALS,
    ),
    Promise.AUTHORISED.broken_if(
        "scope does not limit permissions and projects",
        _JUDGING["_has"].replace(
            "not (_covers(...) and _is_in(...))",
            "False and (not (_covers(scope, permission) and _is_in(scope.projects, project)))",
        ),
        f"{_JUDGE}test_what_is_allowed_is_held_by_the_owner_and_within_the_scope",
    ),
    Promise.AUTHORISED.broken_if(
        "scope does not limit the platform",
        _JUDGING["_has_of_platform"].replace(
            "principal.is_admin and scope.is_of_platform and _covers(scope, permission)",
            "principal.is_admin",
        ),
        f"{_JUDGE}test_what_is_allowed_is_held_by_the_owner_and_within_the_scope",
    ),
    Promise.AUTHORISED.broken_if(
        "scope does not limit what is visible",
        _JUDGING["visible"].replace("return scope.projects", "return None"),
        f"{_JUDGE}test_what_is_visible_is_what_is_not_hidden",
    ),
    Promise.AUTHORISED.broken_if(
        "revoked tokens are good",
        _RIGHTS["of_token"].drop("c.revoked_at.is_(None)"),
        f"{_IDENTITIES}test_revoked_token_is_worthless_on_every_process",
    ),
    Promise.AUTHORISED.broken_if(
        "tokens do not expire",
        _RIGHTS["of_token"].drop("or_(...)"),
        f"{_BOTH}test_rights_are_those_of_now",
    ),
    Promise.AUTHORISED.broken_if(
        "disabled accounts sign in with tokens",
        _RIGHTS["of_token"].drop("principal.c.disabled_at.is_(None)"),
        f"{_IDENTITIES}test_disabled_account_is_nobody_and_enabled_again_somebody",
    ),
    Promise.AUTHORISED.broken_if(
        "disabled accounts keep sessions",
        _RIGHTS["of_session"].drop("principal.c.disabled_at.is_(None)"),
        f"{_IDENTITIES}test_disabled_account_is_nobody_and_enabled_again_somebody",
    ),
    Promise.AUTHORISED.broken_if(
        "disabled accounts sign in with passwords",
        _CONTROL["AccessControl.sign_in"].drop("found.is_disabled"),
        f"{_LOGIN}test_unknown_name_wrong_password_and_disabled_account_read_the_same",
    ),
    Promise.AUTHORISED.broken_if(
        "sessions do not expire",
        _RIGHTS["of_session"].drop("c.expires_at > at"),
        f"{_BOTH}test_rights_are_those_of_now",
    ),
    Promise.AUTHORISED.broken_if(
        "idle sessions go on",
        _RIGHTS["of_session"].drop("c.used_at > used_after"),
        f"{_IDENTITIES}test_session_that_is_not_used_ends",
    ),
    Promise.AUTHORISED.broken_if(
        "what is remembered does not expire",
        _ACCESS_IDENTITIES["find"].drop("self._is_over(found)"),
        f"{_IDENTITIES}test_credentials_expire_although_they_are_remembered",
    ),
    Promise.AUTHORISED.broken_if(
        "changes of rights are not looked at",
        _ACCESS_IDENTITIES["_forget_what_has_changed"].replace(
            "if version != self._version:\n    ...", "if True:\n    self._version = version"
        ),
        f"{_IDENTITIES}test_revoked_token_is_worthless_on_every_process",
    ),
    Promise.AUTHORISED.broken_if(
        "an answer from before a change is remembered",
        _ACCESS_IDENTITIES["_read"].never("self._version != version"),
        f"{_IDENTITIES}test_answer_from_before_a_change_is_not_remembered",
    ),
    Promise.AUTHORISED.broken_if(
        "streams go on without rights",
        _ACCESS_IDENTITIES["_watch"].drop("watch.ended.set()"),
        f"{_IDENTITIES}test_stream_is_told_when_its_credential_is_worthless",
    ),
    Promise.AUTHORISED.broken_if(
        "revoking a token of one's own changes no version",
        _CREDENTIALS["revoke"].drop("await self._rights.changed()"),
        f"{_BOTH}test_every_change_of_rights_is_a_new_version",
    ),
    Promise.AUTHORISED.broken_if(
        "sessions of others can be ended",
        _CREDENTIALS["end"].drop("c.principal_id == principal_id"),
        _OF_OTHERS,
    ),
    Promise.AUTHORISED.broken_if(
        "tokens of others can be revoked",
        _CREDENTIALS["revoke"].drop("c.principal_id == principal_id"),
        _OF_OTHERS,
    ),
    Promise.AUTHORISED.broken_if(
        "sessions can be used from other sites",
        _AUTHENTICATION["authenticate"].drop("require_own_page(request)"),
        f"{_LOGIN}test_sessions_change_things_from_pages_of_ours_alone",
    ),
    Promise.AUTHORISED.broken_if(
        "other sites can sign a browser in",
        _AUTHENTICATION["require_no_other_page"].drop("require_own_page(request)"),
        f"{_LOGIN}test_sessions_change_things_from_pages_of_ours_alone",
    ),
    Promise.AUTHORISED.broken_if(
        "a token makes tokens",
        _ACCOUNT["post_token"].drop("caller.signed_in.session_id is None"),
        f"{_LOGIN}test_token_makes_no_token",
    ),
    Promise.AUTHORISED.broken_if(
        "attempts that have no answer do not count",
        _ATTEMPTS["begin"].drop("self._count(self._pairs, ...)"),
        f"{_LOGIN}test_many_wrong_passwords_at_once_count",
    ),
    Promise.AUTHORISED.broken_if(
        "logins begin all at once",
        _PACING["__call__"].drop("self._free_s = ..."),
        f"{_TEST_PACING}::test_others_pass_while_logins_stand_in_a_row",
    ),
    Promise.AUTHORISED.broken_if(
        "everybody waits in the row of logins",
        _PACING["__call__"].drop("f\"{scope['path']}/\".startswith(...)"),
        f"{_TEST_PACING}::test_others_pass_while_logins_stand_in_a_row",
    ),
    Promise.AUTHORISED.broken_if(
        "the row of logins has no end",
        _PACING["__call__"].replace("wait_s > _LONGEST_S", "wait_s < 0"),
        f"{_TEST_PACING}::test_a_row_that_is_too_long_is_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "another password leaves sessions",
        _ACCOUNT["change_password"].drop("await uow.sessions.end_all(...)"),
        f"{_LOGIN}test_another_password_ends_the_other_sessions_and_the_tokens",
    ),
    Promise.AUTHORISED.broken_if(
        "the last administrator can be demoted",
        _PRINCIPALS["_require_admin"].replace(
            "if not count:\n    raise LastAdministrator", "del count"
        ),
        f"{_BOTH}test_last_administrator_is_neither_disabled_nor_demoted",
    ),
    Promise.AUTHORISED.broken_if(
        "several first administrators are made",
        _PRINCIPALS["add_first"].drop("return False"),
        f"{_BOTH}test_of_several_first_administrators_one_is_made",
    ),
)
