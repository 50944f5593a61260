"""Who may do what, over REST: one's own account, users, groups, members, service accounts."""
