"""Alert servers on a real ZooKeeper and real databases, with channels that are really spoken to."""
