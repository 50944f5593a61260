"""What a payload holds of secrets that are kept in other stores, and what fails the attempt."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.dispatch.payloads import PayloadMaker
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.dispatch.secrets import SecretUnreadable, UnknownSecret
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.errors import StoreUnavailable
from shoal.runtime.secret_stores.reference import SecretReference
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import Vault, create_key
from shoal.sql import Database
from tests.integration.master.dispatch.payloads import NO_NAME
from tests.integration.master.engine.engine_harness import Harness
from tests.support import source_task
from tests.support.clock import utc_now
from tests.support.database.databases import migrated_url
from tests.support.servers.vault_server import ROOT_TOKEN, VaultServer, serving
from tests.support.waiting import DEADLINE_S
from tests.unit.core.decide.driving import spec

NO_CONTEXT: Any = None
NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)
SECRETS: dict[str, str | None] = {
    "db": "vault:shoal/default/db#password",
    "file": "files:default/word",
    "own": None,
}


@pytest.fixture(autouse=True)
def task_type() -> Iterator[None]:
    with source_task.installed():
        yield


@pytest.fixture
def server(tmp_path: Path) -> Iterator[VaultServer]:
    with serving(tmp_path / "vault") as running:
        running.put("shoal/default/db", password="of the vault")
        running.put("shoal/lake/db", password="of the lake")
        yield running


@pytest.fixture
def stores(tmp_path: Path, server: VaultServer) -> SecretStores:
    token, folder = tmp_path / "token", tmp_path / "mounted" / "default"
    token.write_text(ROOT_TOKEN)
    token.chmod(0o600)
    folder.mkdir(parents=True)
    (folder / "word").write_text("of a file\n")
    vault = {"kind": "vault", "url": server.url, "ca": str(server.ca), "token_file": str(token)}
    tables = {
        "vault": {**vault, "paths": ["shoal/{project}/"], "timeout_s": 2},
        "files": {"kind": "files", "folder": str(tmp_path / "mounted")},
    }
    return SecretStores.of(ClusterSettings(secret_stores=tables))


@pytest.fixture
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with Database(migrated_url(request, "sqlite")) as opened:
        yield opened


class Site:
    """A database with secrets in several places, and the payloads that come of it."""

    def __init__(self, database: Database, vault: Vault, stores: SecretStores) -> None:
        self.database, self.vault = database, vault
        self.resolver = Resolver(stores)

    async def put(self, project: str = "default", /, **references: str | None) -> None:
        async with self.database.unit_of_work() as uow:
            await uow.projects.ensure(project, NOW)
            for name, reference in references.items():
                if reference is None:
                    sealed = self.vault.seal(project, name, f"sealed {name}")
                    await uow.secrets.put(project, name, sealed, NOW)
                else:
                    await uow.secrets.refer(project, name, reference, NOW)
            await uow.commit()

    async def put_source(self, secret: str, project: str = "default", **fields: Any) -> None:
        definition = {"kind": "postgresql", "host": "db", "database": "d", "user": "u", **fields}
        async with self.database.unit_of_work() as uow:
            found = DataSourceSpec.model_validate(definition)
            await uow.data_sources.put(project, "wh", found, SourcePassword(None, secret), NOW)
            await uow.commit()

    async def payload(self, kind: str = "SHELL", **task: Any) -> pb.Payload:
        definition = spec({"a": {"type": kind, "params": {"script": "true"}, **task}})
        attempt = Attempt("a", 1, id=7)
        run = Run(
            3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, {"a": attempt}, NOW, NOW
        )
        maker = PayloadMaker(
            self.database, self.vault, lambda _: 99, "one", NO_NAME, lambda: NOW, self.resolver
        )
        while True:
            try:
                return await maker.make(run, attempt)
            except StoreUnavailable as error:
                assert "not answered yet" in str(error)  # noqa: PT017 - a worker asks again
                await asyncio.sleep(0.02)


@pytest.fixture
async def site(database: Database, tmp_path: Path, stores: SecretStores) -> AsyncIterator[Site]:
    create_key(tmp_path / "secrets.key")
    found = Site(database, Vault(tmp_path / "secrets.key"), stores)
    await found.put(**SECRETS)
    yield found
    await found.resolver.aclose()


async def test_task_gets_what_it_names_from_wherever_it_is(site: Site, server: VaultServer) -> None:
    script = 'echo "$SHOAL_SECRET_own"'
    found = await site.payload(
        params={"script": script}, parameters={"url": "u:${secret.db}@h", "w": "${secret.file}"}
    )
    assert dict(found.secrets) == {
        "db": "of the vault",
        "file": "of a file",
        "own": "sealed own",
    }
    assert found.parameters["url"] == "u:of the vault@h"
    assert found.parameters["w"] == "of a file"
    await site.payload(params={"script": script})
    assert server.reads() == 1, "nothing is read for a task that does not use it"


async def test_password_of_a_data_source_may_be_kept_elsewhere(site: Site) -> None:
    await site.put_source("db")
    found = await site.payload(source_task.NAME, params={"source": "wh"})
    assert found.data_sources["wh"].password == "of the vault"
    assert not found.secrets, "the task itself is not given it"
    await site.put_source("db", user="${secret.file}")
    found = await site.payload(source_task.NAME, params={"source": "wh"})
    assert found.data_sources["wh"].user == "of a file"


async def test_shared_data_source_reads_as_its_own_project(site: Site) -> None:
    await site.put("lake", db="vault:shoal/lake/db#password")
    await site.put_source("db", "lake", shared_with=["default"])
    found = await site.payload(source_task.NAME, params={"source": "lake/wh"})
    assert found.data_sources["lake/wh"].password == "of the lake"


@pytest.mark.parametrize(
    ("reference", "words", "is_permanent"),
    [
        ("vault:shoal/lake/db#password", "leads to shoal/lake/db .* may not read", True),
        ("gone:default/x", "names the store gone, which there is not", True),
        ("vault:shoal/default/none#password", ": .*there is no such path", True),
        ("files:default/none", ": .*there is no such file", True),
        ("nonsense", "is not a reference", True),
    ],
)
async def test_what_cannot_be_read_fails_the_attempt_with_the_reason(
    site: Site, server: VaultServer, reference: str, words: str, is_permanent: bool
) -> None:
    await site.put(db=reference)
    with pytest.raises(SecretUnreadable, match=f"the secret db of project default.*{words}") as e:
        await site.payload(parameters={"x": "${secret.db}"})
    assert e.value.permanent is is_permanent
    assert not e.value.retriable
    assert "shoal secret test db --project default" in str(e.value)
    if "lake" in reference:
        assert server.reads() == 0


async def test_unknown_secret_beside_a_reference_is_named(site: Site) -> None:
    with pytest.raises(UnknownSecret, match="no secret typo"):
        await site.payload(parameters={"x": "${secret.db}", "y": "${secret.typo}"})


async def test_reference_that_became_a_value_is_one(site: Site, server: VaultServer) -> None:
    await site.put(db=None)
    found = await site.payload(parameters={"x": "${secret.db}"})
    assert (dict(found.secrets), server.reads()) == ({"db": "sealed db"}, 0)
    await site.put(own="files:default/word")
    async with site.database.unit_of_work(read_only=True) as uow:
        assert (await uow.secrets.stored("default"))["own"].ciphertext == ""
        assert len(await uow.sealing.ciphertexts()) == 1, "a rotation sees what is encrypted alone"
    found = await site.payload(parameters={"x": "${secret.own}"})
    assert dict(found.secrets) == {"own": "of a file"}


async def fetched(
    harness: Harness, resolver: Resolver, vault: Vault, reference: str
) -> tuple[Run, list[pb.FetchVerdict], MasterRpc, list[pb.AttemptRef]]:
    """Let a worker ask for a task that needs a reference, and one that needs none."""
    tasks = [
        {"name": "a", "type": "SHELL", "params": {"script": "echo $SHOAL_SECRET_db"}},
        {"name": "b", "type": "SHELL", "params": {"script": "true"}},
    ]
    (run,) = await harness.runs(1, tasks=[{**one, "retries": 3} for one in tasks])
    async with harness.database.unit_of_work() as uow:
        await uow.secrets.refer("default", "db", reference, NOW)
        await uow.commit()
    await harness.engine.take({0: 1}, "m")
    rpc = MasterRpc(harness.engine, utc_now, harness.database, vault, resolver)
    refs = [
        pb.AttemptRef(
            task_instance_id=run.attempts[name].id or 0, workflow_instance_id=run.id, partition=0
        )
        for name in ("a", "b")
    ]
    answer = await rpc.Fetch(pb.FetchRequest(worker_id="w", attempts=refs), NO_CONTEXT)
    return run, list(answer.verdicts), rpc, refs


async def last_verdict(
    rpc: MasterRpc, ref: pb.AttemptRef, verdict: pb.FetchVerdict
) -> pb.FetchVerdict:
    """Ask as a worker does, until the verdict is another than to ask again; return it."""
    async with asyncio.timeout(DEADLINE_S):
        while verdict.refusal.kind == pb.Refusal.RETRY:
            await asyncio.sleep(0.02)  # the store answers in another thread
            answer = await rpc.Fetch(pb.FetchRequest(worker_id="w", attempts=[ref]), NO_CONTEXT)
            [verdict] = answer.verdicts
    return verdict


async def test_store_that_gives_no_answer_holds_up_no_other_task(
    harness: Harness, tmp_path: Path, stores: SecretStores, server: VaultServer
) -> None:
    server.status, server.errors = 503, ["Vault is sealed"]
    resolver = Resolver(stores)
    async with harness.working():
        run, verdicts, rpc, refs = await fetched(
            harness, resolver, Vault(tmp_path / "none"), "vault:shoal/default/db#password"
        )
        assert verdicts[0].refusal.kind == pb.Refusal.RETRY
        assert verdicts[1].payload.task == "b"
        server.status = 0
        last = await last_verdict(rpc, refs[0], verdicts[0])
        assert dict(last.payload.secrets) == {"db": "of the vault"}
    assert harness.engine.runs[run.id].attempts["a"].state is TaskState.CLAIMED
    await resolver.aclose()


@pytest.mark.parametrize(
    ("reference", "is_left"),
    [("vault:shoal/default/none#x", False), ("vault:shoal/default/db#password", True)],
)
async def test_retries_of_the_task_are_for_stores_that_may_answer_later(
    harness: Harness,
    tmp_path: Path,
    stores: SecretStores,
    server: VaultServer,
    reference: str,
    is_left: bool,
) -> None:
    """The path is not there, which nothing changes; or the store has been down for too long."""
    server.status = 503 if is_left else 0
    later_s = 0.0
    resolver = Resolver(stores, lambda: time.monotonic() + later_s)
    async with harness.working():
        run, verdicts, rpc, refs = await fetched(
            harness, resolver, Vault(tmp_path / "none"), reference
        )
        if is_left:
            assert verdicts[0].refusal.kind == pb.Refusal.RETRY
            later_s = stores.settings_of(SecretReference.parse(reference)).patience_s
        last = await last_verdict(rpc, refs[0], verdicts[0])
    assert last.refusal.kind == pb.Refusal.SUPERSEDED
    assert "the secret db of project default: " in last.refusal.reason
    now = harness.engine.runs[run.id]
    assert now.attempts["a"].number == (2 if is_left else 1)
    await resolver.aclose()
