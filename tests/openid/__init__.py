"""Tests with a certified OpenID provider, for ``make test-oidc``: npm fetches 3 MB."""
