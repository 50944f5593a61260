"""What has happened, who was told of it, and what is defined: ``shoal alerts``, ``shoal alert``."""
