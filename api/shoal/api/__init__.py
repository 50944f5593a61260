"""The API: REST under /api/v1, live events, logs of the workers, behind one bearer token."""
