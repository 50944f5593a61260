"""Alerts: what projects define for them, what has happened, and who was notified."""
