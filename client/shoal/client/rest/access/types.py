"""The JSON of accounts, groups, members, sessions and tokens, as types."""

from typing import Literal

from shoal.client.rest.operations.generated import types as made

RoleName = Literal["reader", "runner", "writer", "owner"]
HolderName = Literal["user", "service-account", "group"]
GrantName = Literal["see", "run"]
RestrictedName = Literal["worker-group", "environment"]
RoleJson = made.RoleOut
MeJson = made.MeOut
SessionJson = made.SessionOut
TokenJson = made.TokenOut
NewTokenJson = made.NewTokenOut
AccountJson = made.AccountOut
NewUserJson = made.NewUserOut
PrincipalGroupJson = made.GroupOut
GrantJson = made.GrantOut
ResourceGrantJson = made.ResourceGrantOut
RestrictionJson = made.RestrictionOut
MemberJson = made.MemberOut
WayJson = made.WayOut
