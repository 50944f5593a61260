"""What may be wrong with a cluster, for programs: the codes of the findings of its health."""

from enum import StrEnum


class HealthCode(StrEnum):
    """Why a cluster is degraded. A code keeps its meaning and its arguments: ``docs/codes.md``."""

    DATABASE = "health.database"
    ZOOKEEPER = "health.zookeeper"
    PARTITIONS = "health.partitions"
    NO_MASTER = "health.no_master"
    NO_WORKER = "health.no_worker"
    MASTER_DATABASE = "health.master_database"
    FENCED = "health.fenced"
    COMMANDS = "health.commands"
    QUEUED = "health.queued"
    QUARANTINED = "health.quarantined"
    SKIPPED = "health.skipped"
    ALERTS_LAG = "health.alerts_lag"
    EXPORT_LAG = "health.export_lag"
    PURGE_AGE = "health.purge_age"
    LOOP_LAG = "health.loop_lag"
