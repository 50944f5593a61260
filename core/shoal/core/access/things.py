"""Things that belong to projects."""

from enum import StrEnum


class Thing(StrEnum):
    """What a request may name by a key of its own: a project by its name, the others by ids."""

    PROJECT = "project"
    INSTANCE = "workflow instance"
    TASK_INSTANCE = "task instance"
    COMMAND = "command"
    SCHEDULE = "schedule"
    BACKFILL = "backfill"
    PAST_RUN = "past run"  # of the exported history, in which projects have names alone
