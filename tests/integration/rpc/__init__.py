"""What masters and workers answer to strangers, and to nonsense from their own."""
