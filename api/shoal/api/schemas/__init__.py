"""The JSON of the API: requests and responses."""
