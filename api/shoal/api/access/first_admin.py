"""The first administrator: there is no default account, and no default password.

The password is shown once, on the terminal of the process that has made the account, and never
logged. It has to be changed at the first sign-in.
"""

import sys

from shoal.api.access.passwords import random_password
from shoal.api.services import Services
from shoal.core.access.principals import PrincipalKind
from shoal.sql.repositories.access.principals import NewAccount

NAME = "admin"


async def make_first_admin(services: Services) -> str | None:
    """Make an administrator if there is no account at all; return the password, None if not."""
    async with services.database.unit_of_work(read_only=True) as uow:
        if await uow.principals.list(PrincipalKind.USER, limit=1):
            return None
    password = random_password()
    account = NewAccount(
        PrincipalKind.USER,
        NAME,
        is_admin=True,
        password=await services.passwords.hash(password),
        must_change_password=True,
    )
    async with services.database.unit_of_work() as uow:
        is_made = await uow.principals.add_first(account, services.clock())
        await uow.commit()
    return password if is_made else None


def show(password: str) -> None:
    """Show the password of the first administrator."""
    sys.stdout.write(
        f"The first administrator is {NAME!r}, the password {password}\n"
        "It is shown this once; it has to be changed at the first sign-in.\n"
    )
    sys.stdout.flush()
