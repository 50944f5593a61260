"""Views: what pages show of many runs."""
