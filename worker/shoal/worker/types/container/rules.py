"""What the worker's administrator allows to containers: settings, which no workflow can change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.container.kind import ContainerParams, Mount


class NotAllowed(WorkFailed):
    """The worker's administrator does not allow what the task asks for."""

    def __init__(self, text: str) -> None:
        super().__init__(text, permanent=True)


@dataclass(frozen=True)
class Rules:
    """The settings ``docker_socket``, ``podman_socket``, ``container_…``, ``kubernetes_…``."""

    sockets: Mapping[str, str]  # by the name of the engine, empty: there is none
    networks: Sequence[str]  # the first is what a task gets that names none
    mounts: Mapping[str, bool]  # whether a folder may be written to
    namespaces: Sequence[str]  # the first likewise
    service_accounts: Sequence[str]
    grace_s: float  # what a worker gives its own processes between TERM and KILL

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self:
        """Read them from what task types get."""
        folders = settings.get("container_mounts", "").split()
        return cls(
            sockets={name: settings.get(f"{name}_socket", "") for name in ("docker", "podman")},
            networks=settings.get("container_networks", "none").split() or ["none"],
            mounts={one.removesuffix(":rw"): one.endswith(":rw") for one in folders},
            namespaces=settings.get("kubernetes_namespaces", "").split(),
            service_accounts=settings.get("kubernetes_service_accounts", "").split(),
            grace_s=float(settings.get("kill_grace_s", "5.0")),
        )

    def socket(self, engine: str) -> str:
        """Return the URL of an engine. Raises NotAllowed."""
        if url := self.sockets[engine]:
            return url
        text = f"this worker has no {engine}: its administrator names one by {engine}_socket"
        raise NotAllowed(f"{text}, or give the task a worker group that has one")

    def network(self, params: ContainerParams) -> str:
        """Return the network of a container. Raises NotAllowed."""
        return _one_of("network", params.network, self.networks, "container_networks")

    def require_mounts(self, mounts: Sequence[Mount]) -> None:
        """Raise NotAllowed unless each is a folder that is listed, character by character.

        What is below one is not allowed with it: who may write there could make it a link to any
        other place.
        """
        for mount in mounts:
            if mount.source not in self.mounts:
                listed = ", ".join(self.mounts) or "none"
                text = (
                    f"the folder {mount.source} may not be mounted on this worker, only: {listed}"
                )
                raise NotAllowed(f"{text} (setting container_mounts)")
            if not mount.read_only and not self.mounts[mount.source]:
                text = f"the folder {mount.source} may be mounted on this worker for reading only"
                raise NotAllowed(f"{text}: leave out read_only: false (setting container_mounts)")

    def namespace(self, params: ContainerParams) -> str:
        """Return the namespace of a Job. Raises NotAllowed."""
        return _one_of("namespace", params.namespace, self.namespaces, "kubernetes_namespaces")

    def require_service_account(self, name: str) -> None:
        """Raise NotAllowed unless it is listed; empty: the namespace's own, without its token."""
        if name:
            _one_of("service account", name, self.service_accounts, "kubernetes_service_accounts")


def _one_of(what: str, wanted: str, allowed: Sequence[str], setting: str) -> str:
    if not wanted and allowed:
        return allowed[0]
    if wanted not in allowed or not wanted:
        listed = ", ".join(allowed) or "none"
        named = f"the {what} {wanted!r} is not allowed" if wanted else f"no {what} is allowed"
        raise NotAllowed(f"{named} on this worker, only: {listed} (setting {setting})")
    return wanted
