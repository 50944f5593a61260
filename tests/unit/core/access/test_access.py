"""Who may do what: the one function that judges, against what roles and scopes are said to be."""

from collections.abc import Set
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.core.access.authorization import AccessVerdict, judge, visible
from shoal.core.access.permissions import (
    OF_PLATFORM,
    OF_PROJECT,
    ROLES,
    Permission,
    Role,
    roles_with,
    stronger,
)
from shoal.core.access.principals import BREAK_GLASS, Principal, PrincipalKind, TokenScope

PROJECTS = (1, 2, 3)
permissions = st.sampled_from(list(Permission))
scopes = st.builds(
    TokenScope,
    st.none() | st.frozensets(permissions),
    st.none() | st.frozensets(st.sampled_from(PROJECTS)),
)
principals = st.builds(
    Principal,
    st.integers(1, 5),
    st.just("ada"),
    st.sampled_from(list(PrincipalKind)),
    is_admin=st.booleans(),
    roles=st.dictionaries(st.sampled_from(PROJECTS), st.sampled_from(list(Role))),
    scope=scopes,
    must_change_password=st.booleans(),
)


def _is_in(limit: Set[Any] | None, one: Any) -> bool:
    return limit is None or one in limit


@given(principals, permissions, st.sampled_from((*PROJECTS, None)))
def test_what_is_allowed_is_held_by_the_owner_and_within_the_scope(
    who: Principal, permission: Permission, project: int | None
) -> None:
    if judge(who, permission, project) is not AccessVerdict.ALLOWED:
        return
    if permission is Permission.SIGNED_IN:
        return
    assert not who.must_change_password
    assert _is_in(who.scope.permissions, permission)
    if permission in OF_PLATFORM:
        assert who.is_admin
        assert who.scope.projects is None
    else:
        assert project is not None
        assert _is_in(who.scope.projects, project)
        assert who.is_admin or permission in ROLES[who.roles[project]]


@given(principals, st.sampled_from(sorted(OF_PROJECT)), st.sampled_from(PROJECTS))
def test_what_is_visible_is_what_is_not_hidden(
    who: Principal, permission: Permission, project: int
) -> None:
    seen = _is_in(visible(who), project)
    if not who.must_change_password:
        assert seen is (judge(who, permission, project) is not AccessVerdict.HIDDEN)
    else:
        assert not seen
        assert judge(who, permission, project) is AccessVerdict.FORBIDDEN


@given(principals, st.sampled_from(sorted(OF_PROJECT)), st.sampled_from((*PROJECTS, None)))
def test_less_scope_never_allows_more(
    who: Principal, permission: Permission, project: int | None
) -> None:
    whole = Principal(
        who.id,
        who.name,
        who.kind,
        who.is_admin,
        who.roles,
        must_change_password=who.must_change_password,
    )
    if judge(who, permission, project) is AccessVerdict.ALLOWED:
        assert judge(whole, permission, project) is AccessVerdict.ALLOWED


@given(principals, st.sampled_from(sorted(OF_PROJECT)))
def test_project_that_there_is_not_is_allowed_to_nobody(
    who: Principal, permission: Permission
) -> None:
    assert judge(who, permission, None) is not AccessVerdict.ALLOWED


def test_roles_hold_those_before_them_and_every_permission_has_a_place() -> None:
    order = list(Role)
    for weaker, better in pairwise(order):
        assert ROLES[weaker] < ROLES[better]
        assert stronger(weaker, better) is stronger(better, weaker) is better
    assert stronger(None, Role.READER) is stronger(Role.READER, None) is Role.READER
    assert stronger(None, None) is None
    assert ROLES[Role.OWNER] == OF_PROJECT
    assert {Permission.SIGNED_IN} | OF_PROJECT | OF_PLATFORM == set(Permission)
    assert not OF_PROJECT & OF_PLATFORM
    assert roles_with(Permission.RUN_OPERATE) == (Role.RUNNER, Role.WRITER, Role.OWNER)


def test_token_of_the_data_folder_may_do_everything() -> None:
    assert visible(BREAK_GLASS) is None
    for permission in Permission:
        assert judge(BREAK_GLASS, permission, 1) is AccessVerdict.ALLOWED
