"""What measurements share: a cluster, its processes, yardsticks of the machine, reports."""
