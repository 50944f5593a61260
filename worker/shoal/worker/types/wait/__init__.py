"""WAIT_FILE and WAIT_SQL: tasks that wait for something outside, and hold no slot meanwhile.

Each attempt is one look, in a process of its own; ``docs/semantics.md`` says what follows from a
look that finds nothing. Start reading in ``looks``, then ``file_work`` and ``sql_work``: what a
look does. ``local``, ``remote`` and ``web`` say what is at a place, ``verdict`` whether that is
what the task waits for, ``roots`` where a worker's tasks may look.
"""
