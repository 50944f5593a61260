"""FLINK: a job of a jar in a session cluster, and such a cluster as a kind of data source."""

from typing import Annotated, Literal

from pydantic import Field

from shoal.core.data_sources.kind import TLS_OR_NOT, FieldNeed, ServerOptions, SourceKind
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.flink.params import FlinkParams


class Flink(ChildType[FlinkParams]):
    """Runs a job in a Flink cluster; killed means that Flink has confirmed its end."""

    Params = FlinkParams
    work = "shoal.worker.types.flink.run:run"
    settles = True


class FlinkOptions(ServerOptions):
    """Options of a Flink session cluster, by its REST API."""

    tls_option = "tls"

    tls: Literal["disable", "verify-full"] = Field(
        default="disable",
        description=f"{TLS_OR_NOT} A password or token is sent with TLS only.",
    )
    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_~.\-]{1,100}){1,10}$")] | None = Field(
        default=None, description="Path of the REST API behind a proxy, such as /flink. Default: /."
    )


class FlinkCluster(SourceKind):
    """A Flink session cluster."""

    title = "Flink"
    Options = FlinkOptions
    probe = "shoal.worker.types.flink.cluster:probe"
    port = 8081
    database = FieldNeed.NONE
    user = FieldNeed.OPTIONAL
    credential = "password, or token without a user"
    password_needs = ("tls", "verify-full")
