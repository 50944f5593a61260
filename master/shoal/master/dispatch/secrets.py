"""The secrets that a task's texts use, decrypted for its payload."""

from collections.abc import Mapping

from shoal.core.errors import ShoalError
from shoal.runtime.secret_stores.errors import InvalidReference, SecretRefused, SecretStoreError
from shoal.runtime.vault import Vault
from shoal.sql.repositories.definitions.secrets import StoredSecret


class UnknownSecret(ShoalError):
    """A task refers to a secret that its project does not have."""

    def __init__(self, project: str, name: str) -> None:
        self.project, self.name = project, name
        super().__init__(
            f"project {project} has no secret {name}; set it with "
            f"`shoal secret set {name} --project {project}`"
        )


class SecretUnreadable(ShoalError):
    """A secret that a task uses is kept in another store, which does not give it.

    ``permanent``: it would not do so the next time either.
    """

    def __init__(self, project: str, name: str, error: SecretStoreError) -> None:
        self.project, self.name = project, name
        self.permanent = isinstance(error, InvalidReference | SecretRefused)
        joint = " " if isinstance(error, InvalidReference) else ": "
        super().__init__(
            f"the secret {name} of project {project}{joint}{error}; "
            f"`shoal secret test {name} --project {project}` tries it"
        )


class ProjectSecrets:
    """The secrets of one project, decrypted one by one as they are asked for.

    Those that are kept in other stores are not read here: they are in ``missing`` when they have
    been asked for, and ``resolved`` has to bring them before what was rendered is used.
    """

    def __init__(self, vault: Vault, project: str, stored: Mapping[str, StoredSecret]) -> None:
        self._vault, self.project, self._stored = vault, project, stored
        self._resolved: dict[str, str] = {}
        self.missing: dict[str, str] = {}  # references, by the names of secrets
        self.used: dict[str, str] = {}

    @property
    def has_references(self) -> bool:
        """Whether any secret is kept elsewhere."""
        return any(one.reference is not None for one in self._stored.values())

    def resolved(self, name: str, value: str) -> None:
        """Take the value of one that was ``missing``; what was made without it counts no more."""
        self._resolved[name] = value
        self.missing.pop(name, None)
        self.used.clear()

    def __call__(self, name: str) -> str:
        """Return the value of a secret. Raises UnknownSecret, VaultError. May read a file."""
        if name not in self.used:
            self.used[name] = self.value(name)
        return self.used[name]

    def value(self, name: str) -> str:
        """Do the same for what the task itself is not given: the password of a data source."""
        if name not in self._stored:
            raise UnknownSecret(self.project, name)
        stored = self._stored[name]
        if stored.reference is None:
            return self._vault.open(self.project, name, stored.ciphertext)
        if name not in self._resolved:
            self.missing[name] = stored.reference
        return self._resolved.get(name, "")
