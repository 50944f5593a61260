"""The clock of tests that need no checked one."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return what this machine's clock shows."""
    return datetime.now(UTC)
