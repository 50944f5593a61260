"""Who may do what, seen from outside: every route, every kind of caller, every id."""
