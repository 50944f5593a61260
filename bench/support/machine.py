"""What machine this is, and where results go."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
RESULTS = CHECKOUT / "bench" / "results"
DATABASES = ("sqlite", "postgresql")


def machine() -> str:
    """Say where and when this is measured."""
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
        f"{now:%Y-%m-%d}, {os.cpu_count()} cores ({model}), Python {platform.python_version()}, "
        f"load average at the end {load}"
    )
