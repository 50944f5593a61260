"""The local cluster: everything Shoal needs on one machine, started from Python alone."""
