"""The task type ARCHIVE: a folder becomes a .tar.gz file."""
