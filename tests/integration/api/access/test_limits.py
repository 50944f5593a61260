"""Nobody gives more than there is: what a token with limits can make of itself."""

import httpx
import pytest

from shoal.core.access.permissions import Permission
from shoal.core.access.principals import TokenScope
from tests.integration.api.access.people import account, bearer, browser, session, token
from tests.integration.api.conftest import PREFIX, Api

MANAGE = TokenScope(frozenset({Permission.PROJECT_READ, Permission.PROJECT_MANAGE}))
USERS = TokenScope(frozenset({Permission.USER_MANAGE}))
READ = TokenScope(frozenset({Permission.PROJECT_READ}))


@pytest.fixture
async def made(api: Api) -> dict[str, dict[str, str]]:
    """Headers of an owner and of an administrator, each with and without limits."""
    await api.client.put(f"{PREFIX}/projects/p", json={"description": ""})
    found: dict[str, dict[str, str]] = {}
    async with api.services.store.unit_of_work() as uow:
        now = api.services.store.clock()
        owner = await account(uow, "owner", now, {"p": "owner"})
        boss = await account(uow, "boss", now, is_admin=True)
        for name, who, scope in (
            ("managing", owner, MANAGE),
            ("within p", owner, TokenScope(projects=frozenset({(await uow.projects.get("p")).id}))),
            ("reading", owner, READ),
            ("users", boss, USERS),
        ):
            _, text = await token(uow, who, now, scope)
            found[name] = dict(bearer(text))
        found["other"] = {"id": str((await token(uow, owner, now))[0])}
        number, text = await session(uow, owner, now)
        found["session"] = {"id": str(number), **browser(text)}
        await uow.commit()
    return found


async def _ask(
    api: Api, method: str, path: str, headers: dict[str, str], body: object = None
) -> int:
    async with httpx.AsyncClient(
        transport=api.client._transport, base_url="http://localhost", headers=headers
    ) as client:
        answer = await client.request(method, PREFIX + path, json=body)
    return answer.status_code


async def test_token_that_is_limited_to_permissions_gives_no_rights(
    api: Api, made: dict[str, dict[str, str]]
) -> None:
    managing, users = made["managing"], made["users"]
    robot = {"name": "robot", "role": "owner"}
    assert await _ask(api, "GET", "/projects/p", managing) == 200
    assert await _ask(api, "POST", "/projects/p/service-accounts", managing, robot) == 403
    member = "/projects/p/members/user/owner"
    assert await _ask(api, "PUT", member, managing, {"role": "owner"}) == 403
    assert await _ask(api, "PUT", "/projects/p/grants/q", managing, {"what": "run"}) == 403
    new = {"name": "evil", "is_admin": True}
    assert await _ask(api, "POST", "/users", users, new) == 403
    assert await _ask(api, "POST", "/users/boss/password-reset", users) == 403
    # Without limits of permissions an owner's token may, within its projects.
    assert await _ask(api, "POST", "/projects/p/service-accounts", made["within p"], robot) == 201
    tokens = "/projects/p/service-accounts/robot/tokens"
    for permission in ("project.manage", "user.manage"):
        asked = {"name": "t", "permissions": ["project.read", permission]}
        assert await _ask(api, "POST", tokens, made["within p"], asked) == 422


@pytest.mark.parametrize("name", ["reading", "within p"])
async def test_token_with_limits_changes_nothing_of_its_account(
    api: Api, made: dict[str, dict[str, str]], name: str
) -> None:
    limited = made[name]
    for path in (f"/me/tokens/{made['other']['id']}", f"/me/sessions/{made['session']['id']}"):
        assert await _ask(api, "DELETE", path, limited) == 403
    passwords = {"current": "seven wild geese fly", "new": "eight tame geese walk"}
    assert await _ask(api, "PUT", "/me/password", limited, passwords) == 403
    assert await _ask(api, "GET", "/me", limited) == 200
