"""How channels are divided among alert servers: each channel has one server that sends."""

from zlib import crc32

ALERT_GROUP = "alerts"  # in which alert servers divide their jobs
SHARES = 8  # jobs of sending; a change needs all alert servers to be stopped


def share_of(project: str, channel: str) -> int:
    """Return which share a channel belongs to."""
    return crc32(f"{project}/{channel}".encode()) % SHARES


def job_of(share: int) -> str:
    """Return the name of the job that sends a share."""
    return f"send-{share}"
