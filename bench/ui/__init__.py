"""What pages of the web UI take that show much, in a real Chromium."""
