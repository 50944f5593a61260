"""A worker tries a data source, and says nothing of its password."""

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent_kit import InProcessWorker, the_worker, work_folders
from tests.support.fake_master import FakeMaster

pytest_plugins = ["tests.integration.worker.agent_fixtures"]


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
