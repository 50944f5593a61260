"""Pages for browsers: the UI and the API reference, and the OpenAPI description."""
