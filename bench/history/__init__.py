"""What the export of a long history takes: of this machine, and of the database."""
