"""What channels that use TLS share."""

import ssl

from shoal.core.alerts.channels import ChannelFailed


def tls_context(authority: str) -> ssl.SSLContext:
    """Return what verifies servers, by ``authority`` in PEM; empty: by those of the system."""
    try:
        return ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        text = f"ca_certificate: no certificate can be read: {error}"
        raise ChannelFailed(text, may_pass=False) from error


def plainly(error: BaseException) -> str:
    """Return what is wrong with a connection, in a line."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
