"""The master: turns commands into runs, decides what happens next, hands tasks to the queue."""
