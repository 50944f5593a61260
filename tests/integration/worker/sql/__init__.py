"""The SQL type in the process of its attempt, with real databases."""
