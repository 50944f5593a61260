"""Secrets: read to try them or what is made with them; keys that are changed."""
