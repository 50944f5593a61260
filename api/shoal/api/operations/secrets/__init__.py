"""Secrets: their values, and the rotation of the key that encrypts them."""
