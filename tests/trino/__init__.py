"""Tests on a real Trino server, for ``make test-trino``: Maven fetches it, 223 MB."""
