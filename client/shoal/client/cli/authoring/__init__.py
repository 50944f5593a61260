"""Commands about definitions around their publishing: drafts, versions, names, exchange."""
