"""Parts of statements, and of what they return, that several repositories share."""
