"""Names of servers: the roles know ZooKeeper and the database by name, not by address.

The file of hosts lies in the suite's folder and is mounted over the machine's own, where only the
suite and what it starts see it.
"""

from pathlib import Path

from tests.chaos.cluster.sandbox import run

DATABASE, ZOOKEEPER = "database", "zookeeper"  # services
_DOMAIN = "chaos"


class Names:
    """The names of all servers, each for one role. Raises Refused: nothing can be mounted."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "hosts"
        self._local = Path("/etc/hosts").read_text()
        self._addresses: dict[str, str] = {}
        self._write()
        run("mount", "--bind", str(self._file), "/etc/hosts")

    def add(self, service: str, role: str, address: str) -> str:
        """Return the name under which one role knows a service at ``address``."""
        name = f"{service}.{role}.{_DOMAIN}"
        self._addresses[name] = address
        self._write()
        return name

    def forget(self, service: str) -> int:
        """Let no name of a service be resolved until ``remember``; return how many those are."""
        gone = [name for name in self._addresses if name.startswith(f"{service}.")]
        self._write({name: at for name, at in self._addresses.items() if name not in gone})
        return len(gone)

    def remember(self) -> None:
        """Let all names be resolved."""
        self._write()

    def unmount(self) -> None:
        run("umount", "--lazy", "/etc/hosts")

    def _write(self, addresses: dict[str, str] | None = None) -> None:
        known = self._addresses if addresses is None else addresses
        lines = "".join(f"{address} {name}\n" for name, address in known.items())
        # Not renamed into place: the mount is of this very file.
        self._file.write_text(f"{self._local}\n{lines}")
