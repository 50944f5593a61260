"""Health of the cluster."""

from typing import Literal

from pydantic import BaseModel, Field

from shoal.api.schemas.common import example


class Live(BaseModel):
    """The process answers."""

    model_config = example({"status": "ok"})

    status: Literal["ok"] = "ok"


class Check(BaseModel):
    """One thing that the API depends on."""

    ok: bool
    detail: str = Field(description="What was found, in words.")


class Checks(BaseModel):
    """What was looked at."""

    database: Check
    zookeeper: Check
    masters: int
    workers: int
    paused_workers: int = Field(description="Workers that take no further tasks, see /cluster.")


class Health(BaseModel):
    """Whether the cluster can do its work."""

    model_config = example(
        {
            "status": "ok",
            "checks": {
                "database": {"ok": True, "detail": "sqlite answers"},
                "zookeeper": {"ok": True, "detail": "connected"},
                "masters": 2,
                "workers": 2,
                "paused_workers": 0,
            },
            "masters": 2,
            "workers": 2,
            "version": "0.1.0",
        }
    )

    status: Literal["ok", "degraded"]
    checks: Checks
    masters: int = Field(description="Live masters.")
    workers: int = Field(description="Live workers.")
    version: str
