"""What other work waits beside a program that a master starts: small writes, and the program."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from shoal.sql import Database

WRITES_S = 15.0  # of small writes: enough for the highest of a hundred
_PAUSE_S = 0.01


async def small_writes(database: Database, is_over: Callable[[float], bool]) -> list[float]:
    """Commit small changes until ``is_over`` after so many seconds; return milliseconds of each."""
    took = []
    statement = text("UPDATE project SET description = :text WHERE id = 1")
    first = time.monotonic()
    while not is_over(time.monotonic() - first):
        began = time.monotonic()
        async with database.unit_of_work() as uow:
            await uow.connection.execute(statement, {"text": str(began)})
            await uow.commit()
        took.append((time.monotonic() - began) * 1000)
        await asyncio.sleep(_PAUSE_S)
    return took


async def run_program(module: str, database: str, folder: Path, share: float) -> None:
    """Run a program of insight on a database's URL; the history is in ``folder``."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, "--data", str(folder)),
        *("--url", str(folder / "history"), "--share", str(share)),
        env={**os.environ, "SHOAL_DATABASE_URL": database},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        if code := await process.wait():
            raise SystemExit(f"{module} ended with {code}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
