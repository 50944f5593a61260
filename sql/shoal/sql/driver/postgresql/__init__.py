"""Connections to PostgreSQL: the pool, one link, statements in a pipeline.

The pool is not psycopg_pool's, which would replace about sixty lines of ``pool`` (``take``, the
idle connections, the permits) and none of the others:

- ``suspend`` fails every wait at once when a process is fenced or the database is silent, for a
  connection that is being made, too. A psycopg_pool that is closed cannot be opened again.
- Its ``check`` asks the server at each checkout, a round trip for each transaction. ``is_alive``
  asks only what was unused for a while; the silence watch asks about all waits in one query.
- Its workers make connections in the background, with their own retries and timeouts. Here the
  caller that waits makes the connection, so ``hurry`` and the caller's deadline end it.
"""
