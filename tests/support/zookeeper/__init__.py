"""ZooKeeper for tests: a server, an ensemble, sessions whose owner is gone."""

#: If this variable is set, tests that need a server get a follower of an ensemble.
ENSEMBLE = "SHOAL_TESTS_ENSEMBLE"
