"""All calls about who may do what."""

from shoal.client.rest.access.account import AccountCalls
from shoal.client.rest.access.audit import AuditCalls
from shoal.client.rest.access.grants import GrantCalls
from shoal.client.rest.access.groups import GroupCalls
from shoal.client.rest.access.members import MemberCalls
from shoal.client.rest.access.restrictions import RestrictionCalls
from shoal.client.rest.access.service_accounts import ServiceAccountCalls
from shoal.client.rest.access.users import UserCalls


class AccessCalls(
    AccountCalls,
    UserCalls,
    GroupCalls,
    MemberCalls,
    GrantCalls,
    RestrictionCalls,
    ServiceAccountCalls,
    AuditCalls,
):
    """The part of ``ShoalClient`` about principals and their rights."""
