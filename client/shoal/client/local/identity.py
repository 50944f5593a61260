"""Look at a data folder's TLS files before eight processes stumble over them one by one."""

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from shoal.client.errors import DataFolderUnusable
from shoal.proto.tls import create_identity


def ensure_identity(folder: Path) -> None:
    """Make the identity in ``folder``, or check the one that is there.

    Raises DataFolderUnusable if authority, certificate and key are not three that belong
    together: no process could talk to another, and gRPC would not say why.
    """
    files = create_identity(folder)
    try:
        authority = x509.load_pem_x509_certificate(files.ca.read_bytes())
        certificate = x509.load_pem_x509_certificate(files.cert.read_bytes())
        key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise _broken(folder) from error
    if key.public_key() != certificate.public_key():
        raise _broken(folder)


def _broken(folder: Path) -> DataFolderUnusable:
    return DataFolderUnusable(
        folder,
        "its ca.pem, node.pem and node.key are not the PEM files of one identity",
        "delete the folder, then a new identity is made at the next start",
    )
