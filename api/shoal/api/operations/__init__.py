"""What routes do, apart from HTTP: commands, explanations, logs, the feed of events."""
