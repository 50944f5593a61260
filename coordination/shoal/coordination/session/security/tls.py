"""TLS to the ZooKeeper servers: always with the verified name of the server."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from shoal.coordination.errors import BadCertificate


@dataclass(frozen=True, slots=True)
class Tls:
    """How a session encrypts its connections; the servers' ``secureClientPort`` takes them.

    All files are PEM. ``ca`` has the authorities that may have signed the servers' certificates
    (None: those of the system). ``certificate`` with ``key`` is what this process shows of itself,
    to servers that ask for one. A server's certificate must be for the host, by name or by IP
    address, as it stands in the address of the ensemble. The files are read at each connection,
    so one that is renewed on disk needs no restart.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return what one connection needs. Raises BadCertificate."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise BadCertificate("ca", self.ca, str(error)) from error
        if self.certificate is not None:
            try:
                # Without a password of its own, OpenSSL would ask for it at the terminal.
                context.load_cert_chain(self.certificate, self.key, password="")
            except OSError as error:
                raise BadCertificate("certificate", self.certificate, str(error)) from error
        return context
