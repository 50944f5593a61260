"""HTTP: one request, or requests until something has come true, and what becomes of the answer.

Start reading in ``kind``, the type and its fields, then ``work``: what the process of an attempt
does. ``kind``, ``json_path`` and ``values`` are cheap to import, as the API does.
``wire`` sends requests and decides which addresses may be reached; ``failures`` says what a failure
means for another attempt.
"""
