"""CONTAINER tasks at real engines, Docker and podman, each started by the tests.

``make test-containers`` runs them, as root and with a network of their own.
"""
