"""Tasks that the master runs itself: choices, sub-workflows, waits for other workflows."""
