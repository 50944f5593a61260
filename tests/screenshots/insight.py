"""Results of jobs behind the pictures: weeks that this cluster has not seen, and what is usual."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shoal.sql import Database
from tests.support.insight import trends

_DAYS = 84
#: Seconds: median and 95th percentile. The runs of the pictures last seconds, so these do.
_USUAL: Mapping[trends.Name, Mapping[str, tuple[float, float]]] = {
    ("flights", "arrivals"): {
        "": (12.4, 14.0),
        "fetch": (2.2, 2.8),
        "check": (1.0, 1.3),
        "load_eu": (4.0, 4.9),
        "load_us": (6.7, 8.1),
        "load_asia": (3.3, 4.2),
        "merge": (1.7, 2.1),
        "report": (0.9, 1.1),
    },
    ("ml", "churn"): {
        "": (4_800.0, 5_300.0),
        "features": (0.6, 0.8),
        "train": (5_200.0, 5_900.0),
        "score": (290.0, 330.0),
    },
    ("ml", "demand"): {"": (6.0, 6.6), "train": (5.0, 5.6), "score": (1.0, 1.2)},
}


async def fill(data: Path, found: dict[str, Any]) -> None:
    """Put results into the database of a cluster; ``found``: what the pictures need."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    async with Database(f"sqlite:///{data}/shoal.db") as database:
        await trends.fill(database, yesterday, _DAYS)
        await trends.set_baselines(database, yesterday, _USUAL)
    found["until"] = yesterday.isoformat()
