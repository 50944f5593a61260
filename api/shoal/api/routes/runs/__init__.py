"""Runs and their tasks: lists, labels, logs, and what is asked of many at once."""
