"""Alerts: whether definitions can be stored, what messages would say, why they were sent."""
