"""Commands about backfills."""
