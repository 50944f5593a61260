"""What the jobs over run history cost: of one day, and of one, four and ten million attempts."""
