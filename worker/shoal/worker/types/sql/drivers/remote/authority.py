"""The certificate of an authority, for libraries that take it from a file alone."""

import tempfile
from pathlib import Path

from shoal.core.data_sources import DataSource


def authority_file(source: DataSource) -> str | None:
    """Return a file with the data source's certificate; None if it has none.

    It is in the attempt's folder, and gone with that.
    """
    certificate = source.options.get("ca_certificate")
    if not certificate:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".pem", dir=Path.cwd(), delete=False) as file:
        file.write(str(certificate))
    return file.name
