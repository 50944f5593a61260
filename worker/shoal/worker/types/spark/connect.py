"""A program's session at the Spark Connect server that its worker keeps.

The program finds it by its environment, which Spark's client reads, and knows nothing of
Shoal. The session's id follows from tag and attempt: only who knows it can end what runs in it.
"""

import uuid
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.core.task_types import Settling, SparkConnect, TaskContext, TaskParams, TaskType
from shoal.worker.types.child.kind import argv
from shoal.worker.types.child.request import WorkRequest

#: The user of all sessions: a session is known by user and id.
USER = "shoal"
#: What the request of ``settling`` calls the server.
SERVER = "spark"
_SETTLE = "shoal.worker.types.sql.spark_session:settle"


def session_id(tag: str, attempt: int) -> str:
    """Return the id of an attempt's session, a UUID as text."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{tag}/{attempt}"))


def variables(server: SparkConnect, tag: str, attempt: int) -> dict[str, str]:
    """Return the variables by which ``SparkSession.builder.getOrCreate()`` finds the session."""
    session = session_id(tag, attempt)
    return {
        "SPARK_REMOTE": f"sc://localhost:{server.port}/;user_id={USER};session_id={session}",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": server.token,
    }


def settling(context: TaskContext, task_type: TaskType[Any], params: TaskParams) -> Settling | None:
    """Return what ends the session of a program that has ended; None: its server is dead."""
    if (server := context.spark) is None:
        return None
    source = DataSource(SERVER, "spark", host="localhost", port=server.port, password=server.token)
    request = WorkRequest(
        work=_SETTLE,
        task_type=f"{type(task_type).__module__}:{type(task_type).__qualname__}",
        params=params.model_dump(mode="json"),
        parameters={},
        task_instance_id=context.task_instance_id,
        attempt=context.attempt,
        tag=context.tag,
        data_sources={SERVER: source},
        settle=True,
    )
    return Settling(argv(context), request.to_json())
