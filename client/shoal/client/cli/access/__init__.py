"""Commands about who may do what: signing in, users, groups, members, service accounts, tokens."""
