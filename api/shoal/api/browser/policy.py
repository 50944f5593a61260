"""The Content-Security-Policy of the UI's pages."""

import secrets

NONCE = "SHOAL_CSP_NONCE"  # stands in the built index.html wherever the nonce belongs


def new_nonce() -> str:
    """Return 128 random bits, for one answer."""
    return secrets.token_urlsafe(16)


def policy(nonce: str) -> str:
    """Return the policy for a page that carries ``nonce``.

    Scripts, workers and data come from this API alone, and no script is inline. The component
    library inserts style elements, which carry the nonce; the graph places its nodes by style
    attributes, which cannot carry one.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' 'nonce-{nonce}'",
            f"style-src-elem 'self' 'nonce-{nonce}'",
            "style-src-attr 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
