"""What a connection to ZooKeeper needs to be encrypted and authenticated."""
