"""What becomes of rows: outputs, a preview in the log, files.

``values`` says what each kind of value is as text and as JSON. ``collectors`` has a collector for
each ``result`` of a task, ``files`` and ``parquet`` write files in bounded memory. Start reading in
``collectors``.
"""
