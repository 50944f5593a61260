"""A data folder that was copied while its cluster ran never reaches that cluster."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.client.discovery import local_api
from shoal.client.errors import CopiedFolder, ServerFailed
from shoal.client.local.background import stop_detached
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.data_folder import cluster_lock, holds_lock, read_state, running_state
from shoal.client.local.roles import load_cluster, run_role
from shoal.client.local.zookeeper import free_port
from shoal.client.rest.client import ShoalClient
from shoal.runtime.folder_identity import FolderIdentity
from tests.integration.client.conftest import HELLO, Shoal


@pytest.fixture
def copy(cluster: LocalCluster, tmp_path: Path) -> Path:
    """What `cp -a` makes of the folder of the running cluster."""
    to = tmp_path / "a copy"
    # Files that vanish meanwhile are left out, as people's copies leave them out.
    subprocess.run(["cp", "-a", cluster.data, to], check=False, capture_output=True)
    assert (to / "shoal.db").exists()
    return to


@pytest.fixture
def unchanged(cluster: LocalCluster) -> Iterator[None]:
    """Nothing has reached the original at the end, and it still runs."""

    def seen() -> list[object]:
        with ShoalClient.connect(cluster.data) as client:
            return [[one["name"] for one in client.pages(client.list_workflows)], cluster.pids()]

    before = seen()
    yield
    assert seen() == before


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["status", "--json"],
        ["workflows"],
        ["whoami"],
        ["ui", "--no-browser"],
        ["run", "hello"],
        ["apply", str(HELLO)],
        ["purge", "--dry-run"],
        ["token", "list"],
    ],
)
def test_commands_through_a_copy_are_refused_with_both_folders(
    shoal: Shoal, cluster: LocalCluster, copy: Path, command: list[str]
) -> None:
    ended = shoal(*command, "--data", str(copy))
    said = " ".join(ended.err.split())
    assert (ended.status, ended.out) == (4, "")
    assert f"{copy} is a copy: its cluster.json is of the cluster in {cluster.data}" in said
    assert f"--data '{cluster.data}'" in said
    assert f"shoal up --data '{copy}'" in said


@pytest.mark.usefixtures("unchanged")
def test_down_and_single_roles_in_a_copy_leave_the_original_alone(
    shoal: Shoal, cluster: LocalCluster, copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    down = shoal("down", "--data", str(copy))
    assert (down.status, "no cluster is running" in down.err) == (0, True)
    original = read_state(cluster.data)
    assert original is not None
    assert (
        load_cluster(copy).zookeeper != original.zookeeper == load_cluster(cluster.data).zookeeper
    )
    for role in ("master", "worker", "api", "alert"):
        assert run_role(role, copy, {}) == 1
        assert f"is of the cluster in {cluster.data}" in capfd.readouterr().err


@pytest.mark.usefixtures("unchanged")
def test_while_a_copy_starts_the_originals_address_does_not_count(
    shoal: Shoal, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    with cluster_lock(copy):
        ended = shoal("status", "--data", str(copy))
        assert (ended.status, "a cluster is starting in" in ended.err) == (4, True)
        with pytest.raises(ServerFailed, match="does not stop"):
            stop_detached(copy, 0.05)
    assert killed == [os.getpid()], "the supervisor of the copy, which is this process"


@pytest.mark.usefixtures("unchanged")
def test_copy_runs_as_a_cluster_of_its_own_beside_the_original(
    shoal: Shoal, cluster: LocalCluster, copy: Path
) -> None:
    news: list[str] = []
    original = read_state(cluster.data)
    with LocalCluster(
        copy, masters=1, workers=1, api_port=free_port(), progress=news.append
    ) as own:
        assert any(f"copied or moved from {cluster.data}" in one for one in news)
        state = running_state(copy)
        assert original is not None
        assert state is not None
        assert (state.api, state.path) == (own.url, str(copy))
        assert state.zookeeper != original.zookeeper
        assert shoal("apply", str(HELLO), "--data", str(copy)).status == 0
        ran = shoal("run", "hello", "--wait", "--data", str(copy))
        assert ran.status == 0, ran.err
        assert shoal("status", "--data", str(copy), "--json").json["api"] == own.url
        assert shoal("status", "--data", str(cluster.data), "--json").json["api"] == cluster.url


def test_folder_is_known_by_whatever_way_it_is_reached(
    shoal: Shoal, cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(cluster.data)
    monkeypatch.chdir(cluster.data.parent)
    for way in (str(link), f"./{cluster.data.name}", f"{cluster.data}/../{cluster.data.name}"):
        assert shoal("status", "--data", way, "--json").json["api"] == cluster.url


@pytest.mark.usefixtures("unchanged")
def test_api_refuses_requests_for_another_folder_with_the_same_token(
    shoal: Shoal, cluster: LocalCluster, copy: Path
) -> None:
    """The original was stopped, and a copy of it has got its port."""
    state = json.loads((copy / "cluster.json").read_text())
    for known in ({"path": str(copy), "identity": ""}, {"path": "", "identity": "", "start": ""}):
        (copy / "cluster.json").write_text(json.dumps({**state, **known}))
        for command in (["status"], ["apply", str(HELLO)], ["ui", "--no-browser"]):
            ended = shoal(*command, "--data", str(copy))
            said = " ".join(ended.err.split())
            assert ended.status != 0
            assert f"the API here has the data folder {cluster.data}" in said
            assert f"start it with `shoal up --data '{copy}'`" in said


def test_moved_folder_of_a_stopped_cluster_is_no_copy(copy: Path, tmp_path: Path) -> None:
    with cluster_lock(copy):
        pass
    state = json.loads((copy / "cluster.json").read_text())
    with pytest.raises(CopiedFolder):
        local_api(copy)
    state |= {"path": str(copy), "identity": str(FolderIdentity.of(copy))}
    (copy / "cluster.json").write_text(json.dumps(state))
    moved = tmp_path / "renamed parent" / "moved"
    moved.parent.mkdir()
    copy.rename(moved)
    assert local_api(moved).url == state["api"]


def test_supervisor_of_another_container_is_not_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    with cluster_lock(tmp_path):
        assert holds_lock(os.getpid(), tmp_path)
        lock = tmp_path / "cluster.lock"
        lock.write_text(json.dumps({"pid": os.getppid(), "start": "x"}))  # its number over there
        with pytest.raises(ServerFailed, match="not a process of this machine or container"):
            stop_detached(tmp_path)
    assert killed == []
