"""The cluster as a whole: its members, the owners of its partitions, and its health."""
