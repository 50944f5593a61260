"""The agent against a real ZooKeeper, a master's real service, and real processes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.core.settings import ClusterSettings
from tests.fake_master import FakeMaster
from tests.integration.worker.agent_kit import InProcessWorker, eventually, log_file, spool


pytest_plugins = ["tests.integration.worker.agent_fixtures"]


async def test_successful_task_is_reported_with_its_times(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": "echo hello; exit 0"})
    task = await master.table.ended(number)
    assert task.state == "SUCCEEDED"
    assert task.report is not None
    assert task.report.exit_code == 0
    assert 0 < task.report.at - task.report.started_at < 10
    assert log_file(cluster.data, number).read_text() == "hello\n"
    await eventually(lambda: spool(cluster.data) == [])
