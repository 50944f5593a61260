"""The JSON of the API: requests, responses, and the examples of its documentation."""
