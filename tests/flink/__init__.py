"""Tests on a real Flink, for ``make test-flink``: a job manager and a task manager, 330 MB."""
