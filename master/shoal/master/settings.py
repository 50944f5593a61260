"""Settings of a master process."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class MasterSettings(BaseSettings):
    """Section ``[master]`` of the settings file, or ``SHOAL_MASTER_…``."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_MASTER_", frozen=True, extra="forbid")

    host: str = "127.0.0.1"  # address that workers and other masters reach this one at
    port: int = Field(default=0, ge=0, le=65535)  # of the gRPC server; 0 takes a free one
    scan_interval_s: float = Field(default=5.0, gt=0)  # commands are re-read at least this often
    scan_batch: int = Field(default=500, ge=1)  # commands turned into instances at once
    # Starts beyond this many open instances stay pending; sub-workflows are never held back.
    max_open_instances: int = Field(default=10_000, ge=1)
    decide_batch: int = Field(default=500, ge=1)  # events decided and stored at once
    sweep_interval_s: float = Field(default=5.0, gt=0)  # queue and claims are compared this often
    takeover_delay_s: float = Field(default=0.0, ge=0)  # wait before taking a lost partition
    # How long the first master waits for others before it takes all partitions.
    initial_rebalance_delay_s: float = Field(default=0.5, ge=0)
    # How long a master may take to let go of partitions before the others go on without it.
    rebalance_timeout_s: float = Field(default=20.0, gt=0)
    kill_retry_s: float = Field(default=2.0, gt=0)  # tell a worker again to kill after this long
