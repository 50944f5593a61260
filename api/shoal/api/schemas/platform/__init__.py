"""What belongs to no project: the cluster, its health, its history, its accounts."""
