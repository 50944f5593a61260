"""Fixtures that every test may use."""

pytest_plugins = ["tests.postgresql", "tests.zookeeper"]
