"""What is wrong with the cluster: clocks, databases of masters, partitions without an owner."""
