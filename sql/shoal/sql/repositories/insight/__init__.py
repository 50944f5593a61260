"""Roll-ups of run history in the database.

``rollups`` is what readers use. ``batches`` has how they get in and out.
"""
