"""Sign-in: a session by a password, by a browser that comes back to this machine."""
