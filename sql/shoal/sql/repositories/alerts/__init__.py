"""Alerts: what projects define for them, what has happened, and the messages about it."""
