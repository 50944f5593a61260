"""What a payload holds of the data sources that a task's params name, and what fails the task."""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.data_sources.resolution import UnusableDataSource
from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword
from shoal.core.macros.placeholders import InvalidMacro
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.dispatch.payloads import PayloadMaker
from shoal.master.dispatch.secrets import UnknownSecret
from shoal.master.dispatch.sources import BadSourceName, UnknownDataSource, WrongKind
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.vault import Vault, WrongSecretsKey, create_key, password_of_source
from shoal.sql import Database
from shoal.sql.errors import UnreadableRow
from tests.integration.master.conftest import Bench
from tests.integration.master.dispatch.payloads import NO_NAME
from tests.integration.master.statements import but_restrictions, noted_reads
from tests.support import source_task
from tests.unit.core.decide.driving import spec

pytestmark = pytest.mark.usefixtures("each_query_once")

NO_STORES = Resolver(SecretStores({}))
NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)
SERVER = {"kind": "postgresql", "host": "db", "database": "sales", "user": "etl"}
PASSWORD = "correct horse"
_JUNK = text("UPDATE data_source SET kind = 'of a newer version'")
SECRETS = {"db_password": "from a secret", "user": "somebody"}


@pytest.fixture(autouse=True)
def task_type() -> Iterator[None]:
    with source_task.installed():
        yield


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    create_key(tmp_path / "secrets.key")
    return Vault(tmp_path / "secrets.key")


class Site:
    """A database with data sources and secrets, and the payloads that come of it."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self.database, self.vault = database, vault

    async def put(
        self,
        name: str = "wh",
        *,
        project: str = "default",
        password: str | None = None,
        secret: str | None = None,
        **fields: Any,
    ) -> None:
        spec_of = DataSourceSpec.model_validate({**SERVER, **fields})
        bound = password_of_source(name)
        sealed = self.vault.seal(project, bound, password) if password else None
        async with self.database.unit_of_work() as uow:
            stored = SourcePassword(sealed, secret)
            await uow.data_sources.put(project, name, spec_of, stored, NOW)
            await uow.commit()

    async def put_secrets(self, project: str = "default") -> None:
        async with self.database.unit_of_work() as uow:
            await uow.projects.ensure(project, NOW)
            for name, value in SECRETS.items():
                sealed = self.vault.seal(project, name, f"{value} of {project}")
                await uow.secrets.put(project, name, sealed, NOW)
            await uow.commit()

    async def payload(
        self, params: dict[str, Any], cluster: str = "one", **task: Any
    ) -> pb.Payload:
        kind = task.pop("type", source_task.NAME)
        definition = spec({"a": {"type": kind, "params": params, **task}})
        attempt = Attempt("a", 1, id=7)
        attempts = {"a": attempt}
        run = Run(3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, attempts, NOW, NOW)
        maker = PayloadMaker(
            self.database,
            self.vault,
            lambda _: 99,
            cluster,
            NO_NAME,
            lambda: datetime.now(UTC),
            NO_STORES,
        )
        return await maker.make(run, attempt)


@pytest.fixture
def site(database: Database, vault: Vault) -> Site:
    return Site(database, vault)


async def test_payload_holds_what_the_params_name_and_nothing_else(site: Site) -> None:
    await site.put(password=PASSWORD, port=5433, options={"sslmode": "require"})
    await site.put("other", kind="sqlite", host="", user="", database="/data/x.db")
    await site.put("third")
    found = await site.payload({"source": "other", "databases": ["wh"]})
    assert found.data_sources.keys() == {"wh", "other"}
    wh, other = found.data_sources["wh"], found.data_sources["other"]
    assert (wh.kind, wh.host, wh.port, wh.database, wh.user) == (
        "postgresql",
        "db",
        5433,
        "sales",
        "etl",
    )
    assert json.loads(wh.options_json) == {"sslmode": "require", "connect_timeout": 10}
    assert (wh.password, wh.version) == (PASSWORD, 1)
    assert (other.kind, other.database, other.port, other.password) == (
        "sqlite",
        "/data/x.db",
        0,
        "",
    )
    assert PASSWORD not in found.params_json
    assert not found.secrets


async def test_texts_are_rendered_with_the_parameters_of_the_task(site: Site) -> None:
    await site.put_secrets()
    await site.put(
        "wh_test",
        host="${env}.db",
        database="sales_$[yyyy]",
        user="${secret.user}",
        secret="db_password",
        options={"sslmode": "verify-ca", "ca_certificate": "${ca}"},
    )
    ca = "-----BEGIN CERTIFICATE-----\nTm8gcmVhbCBvbmU=\n-----END CERTIFICATE-----\n"
    found = await site.payload({"source": "wh_${env}"}, parameters={"env": "test", "ca": ca})
    (source,) = found.data_sources.values()
    assert (source.host, source.database) == ("test.db", "sales_2026")
    assert (source.user, source.password) == ("somebody of default", "from a secret of default")
    assert json.loads(source.options_json)["ca_certificate"] == ca
    # The worker masks both; the task itself is given what stands in the texts, no password.
    assert dict(found.secrets) == {"user": "somebody of default"}


async def test_tasks_that_name_none_ask_the_database_for_nothing(site: Site) -> None:
    await site.put(password=PASSWORD)
    statements = await noted_reads(site.database)
    assert not (await site.payload({"script": "true"}, type="SHELL")).data_sources
    assert not (await site.payload({"note": "wh"})).data_sources
    assert but_restrictions(statements) == []
    await site.payload({"source": "wh"})
    selects = [one for one in but_restrictions(statements) if one.startswith("SELECT")]
    assert len(selects) == 1, statements


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        (
            {"source": "whh"},
            UnknownDataSource,
            r"params\.source: .* no data source whh; did you mean 'wh'",
        ),
        ({"source": "zz"}, UnknownDataSource, "shoal data-source set zz --project default --kind"),
        (
            {"databases": ["wh", "file"]},
            WrongKind,
            r"params\.databases\[1\]: .* file is of the kind sqlite; .*: postgresql",
        ),
        ({"source": "a b"}, BadSourceName, "'a b' is not a name of a data source"),
        ({"source": "${secret.user}"}, InvalidMacro, "cannot be the name of a data source"),
        (
            {"source": "other/hers"},
            UnknownDataSource,
            "other shares no data source hers with default",
        ),
        ({"source": "other/none"}, UnknownDataSource, "--project other --share-with default"),
        ({"source": "open"}, UnusableDataSource, r"default/open: host \(\$\{env\}\) names a param"),
        ({"source": "by_secret"}, UnknownSecret, "project default has no secret typo; set it with"),
    ],
)
async def test_what_cannot_be_used_says_what_to_do(
    site: Site, params: dict[str, Any], error: type[Exception], words: str
) -> None:
    await site.put_secrets()
    await site.put()
    await site.put("file", kind="sqlite", host="", user="", database="/x.db")
    await site.put("hers", project="other")
    await site.put("open", host="${env}")
    await site.put("by_secret", secret="typo")
    with pytest.raises(error, match=words):
        await site.payload(params)


async def test_shared_data_source_comes_with_its_own_projects_password(site: Site) -> None:
    await site.put_secrets("default")
    await site.put_secrets("other")
    await site.put("a", project="other", shared_with=["default"], secret="db_password")
    await site.put("b", project="other", shared_with=["*"], password=PASSWORD)
    await site.put("c", project="other", shared_with=["third"])
    found = await site.payload({"source": "other/a", "databases": ["other/b"]})
    passwords = {name: one.password for name, one in found.data_sources.items()}
    assert passwords == {"other/a": "from a secret of other", "other/b": PASSWORD}
    assert not found.secrets
    with pytest.raises(UnknownDataSource, match="shares no data source c"):
        await site.payload({"source": "other/c"})


async def test_password_is_bound_to_its_data_source(site: Site) -> None:
    await site.put("a", password=PASSWORD)
    await site.put("b", password=PASSWORD)
    async with site.database.unit_of_work() as uow:
        stored = await uow.data_sources.get("default", "a")
        b = (await uow.data_sources.get("default", "b")).spec
        await uow.data_sources.put("default", "b", b, stored.password, NOW)
        await uow.projects.ensure("default", NOW)
        await uow.secrets.put("default", "a", stored.password.ciphertext or "", NOW)
        await uow.commit()
    with pytest.raises(WrongSecretsKey, match="password of the data source b of project default"):
        await site.payload({"source": "b"})
    with pytest.raises(WrongSecretsKey, match="the secret a of project default"):
        await site.payload({"source": "a"}, parameters={"x": "${secret.a}"})


async def test_row_of_a_newer_version_is_told_of(site: Site) -> None:
    await site.put(options={"of_a_newer_version": 1})
    with pytest.raises(UnusableDataSource, match=r"options\.of_a_newer_version is not an option"):
        await site.payload({"source": "wh"})
    async with site.database.unit_of_work() as uow:
        await uow.connection.execute(_JUNK)
        await uow.commit()
    with pytest.raises(UnreadableRow, match="data source"):
        await site.payload({"source": "wh"})


async def test_tags_of_two_clusters_never_meet(site: Site) -> None:
    tags = {(await site.payload({}, cluster=name)).tag for name in ("one", "two", "one")}
    assert len(tags) == 2


async def test_master_fails_the_task_whose_data_source_is_missing_and_runs_the_others(
    bench: Bench,
) -> None:
    create_key(bench.cluster.secrets_key_file)
    site = Site(bench.database, Vault.of(bench.cluster))
    await site.put(password=PASSWORD)
    reads = {"type": source_task.NAME}
    workflow = await bench.publish(
        {
            "good": {**reads, "params": {"source": "wh"}},
            "bad": {**reads, "params": {"source": "none"}},
        }
    )
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        payloads = {}
        for verdict in await worker.fetch(await worker.claim(2)):
            if verdict.WhichOneof("verdict") == "payload":
                payloads[verdict.payload.task] = verdict.payload
        async with bench.database.unit_of_work(read_only=True) as uow:
            uid = await uow.cluster.uid()
        tasks = {task.task: task for task in await bench.tasks(instance.id)}
    assert payloads.keys() == {"good"}
    assert payloads["good"].data_sources["wh"].password == PASSWORD
    digest = hashlib.sha256(json.dumps([uid, instance.id, "good"]).encode()).hexdigest()
    assert payloads["good"].tag == f"shoal-{digest[:24]}"
    assert tasks["good"].state is TaskState.CLAIMED
    assert tasks["bad"].state is TaskState.FAILED
    assert "shoal data-source set none --project default" in (tasks["bad"].reason or "")
