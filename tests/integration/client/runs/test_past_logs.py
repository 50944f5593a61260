"""``shoal logs`` of a run that was purged, on a real cluster with an archive of logs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.integration.client.conftest import Shoal, workflow
from tests.support.processes import export_history
from tests.support.waiting import STEADY_SESSION_S, eventually


@pytest.fixture
def archiving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose logs outlive their runs."""
    folder = tmp_path_factory.mktemp("archiving")
    (folder / "shoal.toml").write_text(
        f'[cluster]\nsession_timeout_s = {STEADY_SESSION_S}\nlogs_url = "{folder}/archive"\n'
        "[master]\nkeep_archived_logs_days = 30\nkeep_newest_instances = 0\n"
    )
    with LocalCluster(folder, masters=1, workers=1, slots=2, api_port=free_port()) as running:
        yield running


def test_log_of_a_purged_run_goes_to_the_screen_a_file_or_a_program(
    shoal: Shoal, archiving: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_DATA", str(archiving.data))
    # More than one request brings, and of two bytes a character: none is cut in two.
    workflow("gone", 'echo a; printf "ü%.0s" $(seq 700000); echo; echo end')
    assert shoal("apply", ".").status == 0
    run = shoal("run", "gone", "--wait", "--json").json
    task = f"{run['id']}:only"
    whole = shoal("logs", task).out
    assert whole == "a\n" + "ü" * 700_000 + "\nend\n"
    archive = archiving.data / "archive"
    asyncio.run(eventually(lambda: [*archive.rglob("*.log")]))
    assert shoal("run", "gone", "--wait").status == 0  # the newest success stays
    export_history(archiving)
    purged = shoal("purge", "--older-than", "0s", "--json").json
    assert purged["instances"] == 1, purged

    assert shoal("logs", task).out == whole
    followed = shoal("logs", task, "--follow")
    assert (followed.status, followed.out) == (0, whole)
    assert "only SUCCEEDED: its run is over, and was purged" in followed.err
    told = shoal("logs", task, "--json").json
    assert (told["task_instance"]["task"], told["log"]) == ("only", whole)
    saved = shoal("logs", task, "--download", ".")
    assert (saved.status, Path(f"{run['id']}-only-1.log").read_text()) == (0, whole)
    named = shoal("logs", task, "--download", "x.log", "--json")
    assert json.loads(named.out)["bytes"] == len(whole.encode())
    assert Path("x.log").read_text() == whole

    attempt = run["tasks"][0]["id"]
    lost = shoal("logs", str(attempt))
    assert lost.status == 3
    assert "`shoal logs INSTANCE:TASK` looks into the history" in " ".join(lost.err.split())
    other = shoal("logs", f"{run['id']}:other", "--follow")
    assert other.status == 3
    assert "it has only" in other.err
