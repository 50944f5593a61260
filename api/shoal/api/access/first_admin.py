"""The first administrator: there is no default account, and no default password.

The password is shown once, on the terminal of the process that has made the account or in a file
of its data folder, and never logged. It has to be changed at the first sign-in.
"""

import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from shoal.api.access.passwords import Passwords, random_password
from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.principals import PrincipalKind
from shoal.core.access.records import NewAccount
from shoal.sql import Database

NAME = "admin"
FILE = "first-admin-password"


async def make_first_admin(
    database: Database, passwords: Passwords, clock: Callable[[], datetime]
) -> str | None:
    """Make an administrator if there is no account at all; return the password, None if not."""
    async with database.unit_of_work(read_only=True) as uow:
        if await uow.principals.list(PrincipalKind.USER, limit=1):
            return None
    password = random_password()
    account = NewAccount(
        PrincipalKind.USER,
        NAME,
        is_admin=True,
        password=await passwords.hash(password),
        must_change_password=True,
    )
    async with database.unit_of_work() as uow:
        is_made = await uow.principals.add_first(account, clock())
        if is_made:
            entry = NewEntry(at=clock(), action="user.add", principal="shoal", object=account.name)
            await uow.audit.add([entry])
        await uow.commit()
    return password if is_made else None


def show(password: str, data: Path) -> None:
    """Show the password of the first administrator.

    On a terminal; where the output may be kept as a log it goes into a private file of the data
    folder. Raises OSError.
    """
    place = f"the password {password}\nIt is shown this once; it"
    if not sys.stdout.isatty():
        file = data / FILE
        # A token of an earlier database may exist; it is useless now.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(file, flags, 0o600), "w") as out:
            os.fchmod(out.fileno(), 0o600)
            out.write(password + "\n")
        place = f"the password is in {file}\nDelete the file then; the password"
    sys.stdout.write(
        f"The first administrator is {NAME!r}, {place} has to be changed at the first sign-in.\n"
    )
    sys.stdout.flush()
