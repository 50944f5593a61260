"""A container engine on a socket of this machine, and one container there.

Docker's API, which podman speaks as well. A container has the task's tag as its name, so there is
never a second one, and a label with the number of its attempt.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import Mount
from urllib3.exceptions import HTTPError

from shoal.core.errors import shortened
from shoal.core.untrusted import read_count
from shoal.worker.types.child.outcome import WorkFailed

ATTEMPT = "shoal.attempt"  # label
_ANSWER_S = 15.0  # of everything but what takes as long as it takes
_GONE_S = 10.0  # how long a removed container may still be shown
_LOOK_S = 0.05


class EngineUnreachable(WorkFailed):
    """The engine's socket does not answer; what runs there may go on."""


class NameTaken(WorkFailed):
    """There is a container of this name, which another attempt has made just now."""


@dataclass(frozen=True)
class Spec:
    """What a container is made of."""

    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    network: str
    read_only: Mapping[str, Path]  # folders and files of this machine by where they are seen
    writable: Mapping[str, Path]
    working_dir: str | None = None
    user: str = ""
    cpus: float | None = None
    memory: int | None = None  # bytes
    pids: int = 1000
    init: bool = False


@dataclass(frozen=True)
class Ending:
    """How a container has ended."""

    code: int
    out_of_memory: bool
    said: str  # by the engine, mostly nothing


@dataclass(frozen=True)
class Login:
    """How the engine signs in at a registry."""

    user: str
    password: str = field(repr=False)


class ContainerEngine:
    """A connection to an engine. Its methods raise WorkFailed. They may be called in threads."""

    def __init__(self, name: str, url: str) -> None:
        self._what = f"{name} at {url}"
        with self.told():
            # The version is asked for here: the first thing to fail if no engine listens.
            self._client = docker.DockerClient(base_url=url, version="auto", timeout=_ANSWER_S)
            self.version = str(self._client.version().get("Version", ""))

    def __str__(self) -> str:
        return f"{self._what} ({self.version})"

    def find(self, name: str) -> "EngineContainer | None":
        """Return the container of that name."""
        with self.told():
            try:
                return EngineContainer(self, self._client.containers.get(name))
            except APIError as error:
                if not _is_gone(error):
                    raise
                return None

    def has(self, image: str) -> bool:
        """Return whether the image is there."""
        with self.told():
            try:
                self._client.images.get(image)
            except ImageNotFound:
                return False
            return True

    def pull(self, image: str, login: Login | None) -> None:
        """Fetch an image. Takes as long as it takes."""
        auth = {"username": login.user, "password": login.password} if login else None
        why = ""
        with self.told():
            try:
                for said in self._client.api.pull(
                    image, stream=True, decode=True, auth_config=auth
                ):
                    why = why or shortened(str(said.get("error") or ""), 500)
            except APIError as error:
                why = _text(error)
        if why:
            advice = "is its name right, does its registry answer, may you read there?"
            raise WorkFailed(f"could not pull {image}: {why}: {advice}")

    def create(self, name: str, spec: Spec) -> "EngineContainer":
        """Make a container, which does not run yet. Raises NameTaken."""
        with self.told():
            try:
                made = self._client.containers.create(spec.image, name=name, **_arguments(spec))
            except APIError as error:
                if error.status_code == requests.codes.conflict:
                    text = f"{self._what}: another attempt of this task has just made {name}"
                    raise NameTaken(text) from error
                if error.status_code == requests.codes.bad_request or isinstance(error, NotFound):
                    text = f"{self._what} refuses the container: {_text(error)}"
                    raise WorkFailed(text, permanent=True) from error
                raise
            return EngineContainer(self, made)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Say where it was that something has failed."""
        try:
            yield
        except APIError as error:
            raise WorkFailed(f"{self._what}: {_text(error)}") from error
        except (DockerException, requests.RequestException, HTTPError, OSError) as error:
            raise EngineUnreachable(
                f"{self._what} does not answer: does it run, is the worker's setting right, may "
                f"the worker's user use the socket? ({shortened(str(error), 300)})"
            ) from error


class EngineContainer:
    """One container. Its methods raise WorkFailed; they mean this one, not another of its name."""

    def __init__(self, engine: ContainerEngine, container: Any) -> None:
        self._engine, self._container = engine, container

    @property
    def attempt(self) -> int:
        """The number of the attempt that has made it; 0 if it does not say."""
        text = str((self._container.labels or {}).get(ATTEMPT, ""))
        return read_count(text) or 0

    @property
    def id(self) -> str:
        """The beginning of its id, as people see it."""
        return str(self._container.short_id)

    def start(self) -> None:
        """Let it run."""
        with self._engine.told():
            try:
                self._container.start()
            except APIError as error:
                # No status tells the task's mistakes from the engine's.
                text = f"it could not be started: {_text(error)}"
                is_wrong = "no such file" in text or "executable file not found" in text
                raise WorkFailed(text, permanent=is_wrong) from error

    def output(self) -> Iterator[bytes]:
        """Return what it writes, from its start to its end."""
        with self._engine.told():
            yield from self._container.logs(stream=True, follow=True)

    def wait(self) -> Ending:
        """Return how it has ended. Takes as long as it takes."""
        with self._engine.told():
            code = int(self._container.wait()["StatusCode"])
            self._container.reload()
        state = self._container.attrs["State"]
        return Ending(code, bool(state.get("OOMKilled")), str(state.get("Error") or ""))

    def stop(self, grace_s: float) -> None:
        """Have it end: SIGTERM, and SIGKILL after the grace. Does nothing if it does not run."""
        with self._engine.told():
            try:
                self._container.stop(timeout=round(grace_s))
            except APIError as error:
                if not _is_gone(error):
                    raise

    def remove(self) -> None:
        """Remove it, killed if it runs; return when it is gone, with its own volumes."""
        deadline = time.monotonic() + _GONE_S
        with self._engine.told():
            while True:
                try:
                    self._container.remove(force=True, v=True)
                except APIError as error:
                    if _is_gone(error):
                        return
                    # Another process removes it at this moment: it is waited for.
                    if error.status_code != requests.codes.conflict:
                        raise
                if time.monotonic() > deadline:
                    raise WorkFailed(f"container {self.id} is still there after its removal")
                time.sleep(_LOOK_S)


def _arguments(spec: Spec) -> dict[str, Any]:
    bound = [(target, source, True) for target, source in spec.read_only.items()]
    bound += [(target, source, False) for target, source in spec.writable.items()]
    limits: dict[str, Any] = {"pids_limit": spec.pids}
    if spec.memory:
        # Without swap: else the limit would be twice as high.
        limits |= {"mem_limit": spec.memory, "memswap_limit": spec.memory}
    if spec.cpus:
        limits["nano_cpus"] = round(spec.cpus * 1e9)
    return {
        "entrypoint": list(spec.command) or None,
        "command": list(spec.arguments) or None,
        "environment": dict(spec.environment),
        "labels": dict(spec.labels),
        "network_mode": spec.network,
        "mounts": [
            Mount(target, str(source), type="bind", read_only=is_read_only)
            for target, source, is_read_only in bound
        ],
        "working_dir": spec.working_dir,
        "user": spec.user or None,
        "init": spec.init or None,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        **limits,
    }


def _is_gone(error: APIError) -> bool:
    """Whether there is no such container. Podman has another status while it goes."""
    return isinstance(error, NotFound) or "no such container" in _text(error).lower()


def _text(error: APIError) -> str:
    return shortened(str(error.explanation or error), 500)
