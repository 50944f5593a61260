"""What projects may use of the cluster and of each other: each check, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_CHECKING = Place("shoal.api.operations.authoring.checks")
_RESOURCES = Place("shoal.master.dispatch.resources")
_HEALTH = Place("shoal.api.routes.health")
_OPERATIONS_RESOURCES = Place("shoal.api.operations.resources")
_ROUTES_RESOURCES = Place("shoal.api.routes.resources")
_WORKFLOWS = Place("shoal.sql.repositories.definitions.workflows")
_MAKING = Place("shoal.master.dispatch.payloads")
_WORKER_GROUPS = Place("shoal.master.dispatch.worker_groups")
_DATA_SOURCES = Place("shoal.api.routes.data_sources")
_ENVIRONMENTS = Place("shoal.sql.repositories.definitions.environments")
_ROUTES_ENVIRONMENTS = Place("shoal.api.routes.environments")
_RESTRICTIONS = Place("shoal.sql.repositories.access.restrictions")
_BACKFILL_PLANNING = Place("shoal.sql.backfill_plans")
_BACKFILL = Place("shoal.master.services.backfill_rights")
_RIGHTS = Place("shoal.sql.repositories.access.rights")
_BACKFILLS = Place("shoal.master.services.backfills")
_GRANTS = "tests/integration/api/definitions/test_grants.py::"
_PAYLOADS = "tests/integration/master/dispatch/test_resources.py::"
_FILES = "tests/integration/api/project/test_resources.py::"
_API = "tests/integration/api/project/test_restrictions.py::"
_MASTER = "tests/integration/master/dispatch/test_restrictions.py::"
_STORED = "tests/integration/sql/definitions/test_restrictions.py::"
_CALLERS = "tests/integration/master/services/test_backfill_callers.py::"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "a definition names files that another project does not share",
        _CHECKING["_not_granted"].drop("*await _not_shared(uow, spec)"),
        f"{_GRANTS}test_files_of_another_project_are_named_as_far_as_it_shares_them",
    ),
    Promise.AUTHORISED.broken_if(
        "a task gets files that another project does not share",
        _RESOURCES["resources_of"].replace(
            "home == project or is_shared(...)", "home or is_shared(...)"
        ),
        f"{_PAYLOADS}test_files_of_another_project_come_as_far_as_it_shares_them[sqlite]",
        f"{_PAYLOADS}test_what_a_project_shares_and_nobody_can_read_is_not_shared[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "the state of the cluster tells everybody its hosts",
        _HEALTH["_as_seen"].replace("caller.may(Permission.CLUSTER_READ)", "caller"),
        "tests/integration/api/cluster/test_cluster.py::"
        "test_others_than_administrators_are_told_that_and_not_why",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file is stored over one that was not seen",
        _OPERATIONS_RESOURCES["put"].drop("await check(uow)"),
        f"{_FILES}test_second_of_two_editors_of_a_file_is_told_what_is_there_now",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file is deleted that was not seen",
        _ROUTES_RESOURCES["delete_resource"].drop(
            "await condition.check(lambda: _newest(uow, project, name), tag_of=_tag)"
        ),
        f"{_FILES}test_second_of_two_editors_of_a_file_is_told_what_is_there_now",
    ),
    Promise.AUTHORISED.broken_if(
        "a definition names a worker group of other projects",
        _WORKFLOWS["problems"].drop("self._restrictions.require"),
        f"{_API}test_definition_with_a_worker_group_of_others_is_refused_where_it_says_so",
    ),
    Promise.AUTHORISED.broken_if(
        "a task runs on workers of other projects",
        _MAKING["make"].drop("await self._groups.require(...)"),
        f"{_MASTER}test_payload_leaves_for_no_worker_group_of_other_projects[sqlite]",
        f"{_MASTER}test_task_whose_project_has_lost_its_worker_group_fails_with_the_reason[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a master never reads restrictions again",
        _WORKER_GROUPS["_is_good"].replace(
            "self._read_at is not None and now - self._read_at < self._good_for_s",
            "self._read_at is not None or now < 0",
        ),
        f"{_MASTER}test_payload_leaves_for_no_worker_group_of_other_projects[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a data source is tried on workers of other projects",
        _DATA_SOURCES["test_data_source"].never("closed"),
        f"{_API}test_nobody_tries_a_data_source_from_workers_of_others",
    ),
    Promise.AUTHORISED.broken_if(
        "a definition names an environment of other projects",
        _ENVIRONMENTS["require"].replace("names - closed", "names"),
        f"{_STORED}test_environment_of_others_is_as_one_that_there_is_not[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a hint names an environment of other projects",
        _ENVIRONMENTS["names_for"].replace(
            "home in restricted.get(name, {home})", "restricted is not None"
        ),
        f"{_STORED}test_environment_of_others_is_as_one_that_there_is_not[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a task runs in an environment of other projects",
        _ENVIRONMENTS["get_for"].replace(
            "row.restricted is None or home in _named_in(row.projects)", "row.id is not None"
        ),
        f"{_MASTER}test_environment_of_other_projects_is_answered_as_none[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "environments of other projects are listed",
        _ROUTES_ENVIRONMENTS["list_environments"].replace("caller.visible", "None"),
        f"{_API}test_environment_of_others_is_answered_as_one_that_there_is_not",
    ),
    Promise.AUTHORISED.broken_if(
        "an environment of other projects is shown",
        _ROUTES_ENVIRONMENTS["get_environment"].replace(
            "uow.environments.get_visible(name, caller.visible)",
            "uow.environments.get_visible(name, None)",
        ),
        f"{_API}test_environment_of_others_is_answered_as_one_that_there_is_not",
    ),
    Promise.AUTHORISED.broken_if(
        "a restriction that cannot be read allows everything",
        _RESTRICTIONS["closed"].replace(
            "(row.name for row in rows if home not in found.get(row.name, ()))",
            "(name for name, whose in found.items() if home not in whose)",
        ),
        f"{_STORED}test_one_that_cannot_be_read_allows_nothing[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a backfill goes downstream where nobody lets it see",
        _BACKFILL_PLANNING["_dependents"].replace("(key[0], other[0]) in given", "key"),
        f"{_CALLERS}test_a_grant_that_is_gone_when_the_master_plans_leaves_the_project_out[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a backfill is planned with the rights of when it was asked for",
        _BACKFILL["require_plan"].drop("await require_rights(...)"),
        f"{_CALLERS}test_rights_that_are_gone_when_the_master_plans_are_not_used",
    ),
    Promise.AUTHORISED.broken_if(
        "a backfill reaches projects beyond the limits of the token",
        _BACKFILL["require_plan"].never("not homes <= {*judged}"),
        f"{_CALLERS}test_a_project_that_the_api_has_not_judged_is_not_reached[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a disabled account moves backfills",
        _RIGHTS["of_principal"].drop("principal.c.disabled_at.is_(None)"),
        f"{_CALLERS}test_requests_about_it_need_the_rights_of_that_moment",
    ),
    Promise.AUTHORISED.broken_if(
        "a request about a backfill is carried out with rights of before",
        _BACKFILLS["_request"].drop("await require_rights(...)"),
        f"{_CALLERS}test_requests_about_it_need_the_rights_of_that_moment",
    ),
)
