"""What the cluster needs for itself: partitions, quarantine, sizes, and purging."""
