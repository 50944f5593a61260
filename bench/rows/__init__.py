"""Large results of SQL tasks: how much memory the process of an attempt takes to write a file."""
