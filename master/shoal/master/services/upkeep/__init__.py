"""What keeps a cluster small, and its history: purges, resources, archived logs, the export."""
