"""What the export of the history reads: finished rows in bulk, and how far it has come.

``position`` has the one row that decides which export counts. ``finished_rows`` reads the rows.
"""
