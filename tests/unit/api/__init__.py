"""The API's parts that need no server."""
