"""Tests of the plug-in, for ``make test-extras``."""
