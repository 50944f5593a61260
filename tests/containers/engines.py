"""Real container engines, each with its files and its socket in a folder of its own."""

import io
import resource
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

BOX = "localhost/box:latest"
_APPLETS = ("cat", "chmod", "dd", "echo", "env", "false", "head", "id", "ls", "printf", "seq")
_MORE = ("sh", "sleep", "tail", "test", "touch", "tr", "true", "wc", "ps", "mkdir", "stat")
_START_S = 60.0


@dataclass(frozen=True)
class Running:
    """An engine. ``client`` looks at it from outside."""

    name: str
    folder: Path
    client: Any

    @property
    def socket(self) -> str:
        return f"unix://{self.folder}/sock"

    @property
    def settings(self) -> dict[str, str]:
        """What a worker's administrator would say."""
        return {f"{self.name}_socket": self.socket, "kill_grace_s": "5.0"}

    def containers(self) -> list[Any]:
        """All that there are, running or not."""
        shown = self.client.api.containers(all=True)
        return [self.client.containers.get(one["Id"]) for one in shown]


@contextmanager
def running(name: str) -> Iterator[Running]:
    """Run the engine of that name with one image, a static busybox."""
    # The paths of sockets are short, so it is not a folder of pytest's.
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    argv, env = _podman(folder) if name == "podman" else (_dockerd(folder), None)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    try:
        engine = Running(name, folder, _client(folder, process))
        _import_box(engine.client)
        yield engine
        for one in engine.containers():
            one.remove(force=True)
        engine.client.close()
    finally:
        process.terminate()
        process.wait(_START_S)
        shutil.rmtree(folder, ignore_errors=True)


def _dockerd(folder: Path) -> list[str]:
    # It touches neither the firewall nor any network: containers have none, or the host's.
    changes_nothing = ["--bridge=none", "--iptables=false", "--ip6tables=false"]
    return [
        *("dockerd", "-H", f"unix://{folder}/sock", "-p", f"{folder}/pid", "--group", "root"),
        *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
        *(*changes_nothing, "--ip-forward=false", "--ip-masq=false", "--storage-driver=vfs"),
    ]


def _podman(folder: Path) -> tuple[list[str], dict[str, str]]:
    # Its usual limits are higher than what a test's machine may allow.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = f'["nofile={files}:{files}", "nproc={files}:{files}"]'
    (folder / "containers.conf").write_text(
        f"[containers]\ndefault_ulimits = {limits}\n"
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n'
    )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
    )
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "CONTAINERS_CONF": f"{folder}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
    }
    return ["podman", "system", "service", "--time", "0", f"unix://{folder}/sock"], env


def _client(folder: Path, process: "subprocess.Popen[bytes]") -> Any:
    deadline = time.monotonic() + _START_S
    while not _answers(folder):
        said = (folder / "log").read_text()[-2000:]
        assert process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    return docker.DockerClient(base_url=f"unix://{folder}/sock")


def _answers(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(folder / "sock")) == 0


def _import_box(client: Any) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for folder in ("bin", "etc", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        tar.add("/bin/busybox", "bin/busybox")
        for applet in (*_APPLETS, *_MORE):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    repository, tag = BOX.split(":")
    client.api.import_image_from_data(data.getvalue(), repository=repository, tag=tag)
