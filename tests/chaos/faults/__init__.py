"""What is done to the cluster: each fault a small class that begins, holds and heals."""
