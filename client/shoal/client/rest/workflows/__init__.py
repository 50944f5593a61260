"""Workflows over REST: drafts and plans, versions, names, archive, exchange."""
