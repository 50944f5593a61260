"""Mutual TLS between Shoal's processes.

Every process of a cluster shows a certificate signed by the cluster's own authority, and accepts
no peer without one. ``create_identity`` makes authority and certificate for a local cluster; a
production cluster brings files of its own. All nodes may share one certificate: it
proves membership alone, and the identity of a process comes from ZooKeeper.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from shoal.proto.errors import InvalidIdentity
from shoal.runtime.settings import ClusterSettings

# The name that every node certificate carries and every client expects, whatever the address.
NODE_NAME = "node.shoal.internal"
_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True)
class TlsFiles:
    """Paths of the PEM files of one process: authority, own certificate, own key."""

    ca: Path
    cert: Path
    key: Path

    @classmethod
    def inside(cls, folder: Path) -> "TlsFiles":
        """Name the files as ``create_identity`` lays them out."""
        return cls(folder / "ca.pem", folder / "node.pem", folder / "node.key")

    @classmethod
    def of(cls, cluster: ClusterSettings) -> "TlsFiles":
        """Name the files that the settings name, by default those of the data folder."""
        files = cls.inside(cluster.data / "tls")
        return cls(
            cluster.tls_ca or files.ca, cluster.tls_cert or files.cert, cluster.tls_key or files.key
        )

    def read(self) -> tuple[bytes, bytes, bytes]:
        """Return the contents. Raises InvalidIdentity naming the file and the cure."""
        try:
            contents = self.ca.read_bytes(), self.cert.read_bytes(), self.key.read_bytes()
        except OSError as error:
            raise InvalidIdentity(
                f"cannot read the TLS file {error.filename}: {error.strerror}; `shoal up` creates "
                "these files in the data folder, or set tls_ca, tls_cert and tls_key"
            ) from error
        try:
            expires = x509.load_pem_x509_certificate(contents[1]).not_valid_after_utc
        except ValueError as error:
            raise InvalidIdentity(f"{self.cert} holds no PEM certificate: {error}") from error
        if expires < datetime.now(UTC):
            raise InvalidIdentity(
                f"the certificate {self.cert} expired on {expires:%Y-%m-%d}; "
                "replace it (for a local cluster: delete its folder)"
            )
        return contents

    def server_credentials(self) -> grpc.ServerCredentials:
        """Credentials of a server that demands a client certificate."""
        ca, cert, key = self.read()
        return grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True)

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Credentials of a client that shows its certificate."""
        ca, cert, key = self.read()
        return grpc.ssl_channel_credentials(ca, key, cert)


def create_identity(folder: Path) -> TlsFiles:
    """Make the cluster's authority and one node certificate in ``folder`` (0700, files 0600).

    Existing files are kept. The authority's own key is thrown away after signing: nothing in the
    data folder can sign further members.
    """
    files = TlsFiles.inside(folder)
    if all(path.exists() for path in (files.ca, files.cert, files.key)):
        return files
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = datetime.now(UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Shoal cluster authority")])
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NODE_NAME)])
    addresses = [x509.IPAddress(IPv4Address("127.0.0.1")), x509.IPAddress(IPv6Address("::1"))]
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    cert = (
        _builder(name, ca_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NODE_NAME), *addresses]), False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False
        )
        .sign(ca_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(files.key, private)
    _write(files.cert, cert.public_bytes(serialization.Encoding.PEM))
    _write(files.ca, ca.public_bytes(serialization.Encoding.PEM))
    return files


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
