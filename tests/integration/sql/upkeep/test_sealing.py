"""Which key encrypts, as it is stored; secrets that were encrypted before keys had ids."""

from sqlalchemy import text

from shoal.sql import Database
from shoal.sql.repositories.definitions.secrets import StoredSecret
from shoal.sql.repositories.definitions.secrets_keys import SealingState
from tests.integration.sql.given import NOW


async def test_secrets_without_the_id_of_their_key_are_found_by_a_rotation(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()
        async with database.unit_of_work() as uow:
            await uow.projects.ensure("p", NOW)
            await uow.connection.execute(
                text(
                    "INSERT INTO secret (project_id, name, ciphertext, created_at, updated_at) "
                    "SELECT id, 'db', '1:abc', created_at, created_at FROM project"
                )
            )
            await uow.commit()
        async with database.unit_of_work() as uow:
            assert await uow.sealing.state(hold="change") == SealingState(None, None, (), ())
            assert await uow.sealing.holds(None)
            assert await uow.secrets.stored("p") == {"db": StoredSecret("1:abc")}
            [old] = await uow.sealing.not_with("0123456789ab", (), 10)
            assert (old.project, old.name, old.is_password) == ("p", "db", False)
            assert await uow.sealing.not_with("0123456789ab", [old], 10) == []
            assert await uow.sealing.replace(old, "2:0123456789ab:def")
            assert not await uow.sealing.replace(old, "2:0123456789ab:ghi"), "it has changed"
            assert await uow.sealing.not_with("0123456789ab", (), 10) == []
            await uow.sealing.save(SealingState("0123456789ab", "next", ("old",), ("gone",)))
            await uow.commit()
        async with database.unit_of_work() as uow:
            state = await uow.sealing.state()
            assert state == SealingState("0123456789ab", "next", ("old",), ("gone",))
            assert not await uow.sealing.holds(None)
            assert (await uow.audit.head()).position == 0
