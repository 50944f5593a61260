"""What machine this is, and where results go."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
RESULTS = CHECKOUT / "bench" / "results"
DATABASES = ("sqlite", "postgresql")


@cache
def revision() -> str:
    """Return the revision that was checked out at the first call, short.

    "unknown revision" outside of a checkout.
    """
    try:
        found = _git("rev-parse", "--short", "HEAD")
        changes = " + local changes" if _git("status", "--porcelain", "-uno") else ""
    except (OSError, subprocess.CalledProcessError):
        return "unknown revision"
    return f"{found}{changes}"


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def machine() -> str:
    """Return what is measured, when and where: revision, date, processor, Python, load."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
        model = names[0] if names else model
    except OSError:
        pass
    now = datetime.now(UTC)
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    return (
        f"{revision()}, {now:%Y-%m-%d}, {os.cpu_count()} cores ({model}), "
        f"Python {platform.python_version()}, load average at the end {load}"
    )
