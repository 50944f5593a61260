"""Payloads of tasks as a master makes them, with environments from the database."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shoal.core.definition.environments import EnvironmentSpec
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import WorkflowState
from shoal.master.dispatch.payloads import PayloadMaker
from shoal.master.dispatch.worker_groups import WorkerGroups
from shoal.master.engine.publications import Publications
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.storage import StorageLimits
from shoal.runtime.vault import Vault
from shoal.sql import Database
from tests.unit.core.decide.driving import spec

NO_STORES = Resolver(SecretStores({}))

NO_NAME = Publications("", StorageLimits(file=1 << 30, project=10 << 30))


NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


ML = {"variables": {"A": "${day}"}, "python": "/opt/ml", "setup": "echo $[yyyy]"}


async def put(database: Database, name: str = "ml", **fields: Any) -> None:
    async with database.unit_of_work() as uow:
        await uow.environments.put(name, EnvironmentSpec.model_validate({**ML, **fields}), NOW)
        await uow.commit()


def maker_of(database: Database, restrictions_good_for_s: float = 1.0) -> PayloadMaker:
    return PayloadMaker(
        database,
        Vault(Path("/dev/null")),
        lambda _: 99,
        "one",
        NO_NAME,
        lambda: NOW,
        NO_STORES,
        WorkerGroups(database, restrictions_good_for_s),
    )


async def payload(
    database: Database,
    default: str | None = None,
    kind: str = "SHELL",
    maker: PayloadMaker | None = None,
    **task: Any,
) -> pb.Payload:
    params = {"script": "true"} if kind == "SHELL" else {"data_source": "", "sql": "SELECT 1"}
    definition = spec({"a": {"type": kind, "params": params, **task}}, environment=default)
    attempts = {"a": Attempt("a", 1, id=7)}
    run = Run(3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, attempts, NOW, NOW)
    return await (maker or maker_of(database)).make(run, attempts["a"])
