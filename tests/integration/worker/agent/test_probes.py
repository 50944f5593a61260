"""A worker tries a data source, and says nothing of its password."""

from dataclasses import replace
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.proto.data_sources import to_message
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, the_worker, work_folders
from tests.support.fake_master import FakeMaster
from tests.support.packages import installed
from tests.support.servers.sshd import served

pytest_plugins = ["tests.integration.worker.agent.fixtures"]


async def test_password_is_masked_in_what_a_probe_says_and_nothing_is_left(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, channels: Channels
) -> None:
    member = await the_worker(master.session)
    service = channels.probe(str(member.data["address"]))
    source = pb.DataSource(
        kind="postgresql", host="sesame.invalid", database="d", user="u", password="sesame"
    )
    answer = await service.Probe(pb.ProbeRequest(name="db", data_source=source))
    assert not answer.ok
    assert "***.invalid" in answer.text  # its host is shown, and holds the password here
    assert "sesame" not in answer.text
    assert work_folders(cluster.data) == []


async def test_host_is_signed_in_to_and_says_which_server_it_is(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, tmp_path: Path
) -> None:
    member = await the_worker(master.session)
    service = channels.probe(str(member.data["address"]))
    with served(tmp_path) as host:
        for source, is_ok, said in (
            (host.source, True, "SSH-2.0-OpenSSH"),
            (replace(host.source, options={}), False, "The host shows ssh-ed25519 "),
        ):
            asked = pb.ProbeRequest(name="farm", data_source=to_message(source))
            answer = await service.Probe(asked)
            assert answer.ok is is_ok, answer.text
            assert said in answer.text


async def test_kind_that_is_not_installed_is_said_of_the_worker(
    master: FakeMaster, worker: InProcessWorker, channels: Channels
) -> None:
    member = await the_worker(master.session)
    service = channels.probe(str(member.data["address"]))
    source = pb.DataSource(kind="of_a_later_version", host="h")
    answer = await service.Probe(pb.ProbeRequest(name="db", data_source=source))
    assert not answer.ok
    assert answer.text.startswith("on this worker: ")


KIND = """
from shoal.core.data_sources.kind import SourceKind, SourceOptions

class Cage(SourceKind):
    title = "Cage"
    Options = SourceOptions
    probe = "cage_probe:probe"
"""
PROBE = """
def probe(work):
    work.log("Cage 1.0 at " + work.data_source(work.params.data_source).host)
"""


async def test_kind_of_another_package_is_tested_by_its_own_probe(
    master: FakeMaster,
    cluster: ClusterSettings,
    channels: Channels,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    asked = pb.ProbeRequest(name="c", data_source=pb.DataSource(kind="cage", host="h"))
    async with InProcessWorker(cluster, env_pass=["PYTHONPATH"]):
        member = await the_worker(master.session)
        service = channels.probe(str(member.data["address"]))
        answer = await service.Probe(asked)
        assert (answer.ok, "unknown kind of data source 'cage'" in answer.text) == (False, True)
        modules = {"cage_kind": KIND, "cage_probe": PROBE}
        point = {"cage": "cage_kind:Cage"}
        with installed(tmp_path, "shoal.data_source_kinds", point, **modules):
            answer = await service.Probe(asked)
    assert (answer.ok, answer.text) == (True, "Cage 1.0 at h")
