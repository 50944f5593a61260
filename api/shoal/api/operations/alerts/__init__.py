"""Alerts: whether definitions can be stored, what messages would say, why people were told."""
