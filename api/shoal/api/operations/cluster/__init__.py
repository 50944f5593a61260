"""The cluster as a whole: its health, the owners of its partitions, and the key of its secrets."""
