"""A cluster authority whose key is kept: it signs certificates that are expired or misnamed."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shoal.proto.tls import NODE_NAME, TlsFiles

_YEAR = timedelta(days=365)


class Authority:
    """Signs identities, each in a folder of its own."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the test")])
        now = datetime.now(UTC)
        self.certificate = (
            self._certificate(self._name, self._key.public_key(), now - _YEAR, now + _YEAR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def identity(
        self, folder: Path, name: str = NODE_NAME, *, expired: bool = False, ca: bytes | None = None
    ) -> TlsFiles:
        """Write an identity for ``name``. Its owner trusts ``ca``, a PEM; default: this one."""
        folder.mkdir(parents=True, exist_ok=True)
        files = TlsFiles.inside(folder)
        key = ec.generate_private_key(ec.SECP256R1())
        end = datetime.now(UTC) + (-timedelta(days=1) if expired else _YEAR)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            self._certificate(subject, key.public_key(), end - _YEAR, end)
            .add_extension(x509.SubjectAlternativeName([_subject(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        files.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files.ca.write_bytes(ca or self.pem)
        return files

    @property
    def pem(self) -> bytes:
        """The certificate of the authority."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
        )


def _subject(name: str) -> x509.GeneralName:
    """Return a name for a certificate: an IP address as such, all else as a host's name."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
