"""Views: what one looks at of many runs or attempts together. Start at ``today.py``."""
