"""Calls about what a project holds besides workflows: values, data sources, groups, files."""
