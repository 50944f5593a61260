"""What has happened, who was notified, and what is defined: ``shoal alerts``, ``shoal alert``."""
