"""What is sent for each operation, a module for each tag of the API.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""
