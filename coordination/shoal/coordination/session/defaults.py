"""How everything above a session treats the servers: one value for all."""

# A watch is a hint, and may be lost or late: watched znodes are read again this often. It bounds
# how long a damaged or deleted znode goes unnoticed, for a request each. Owner nodes, of which
# there are many, are read in turns: a part of them each time (``recipes/ownership.py``).
REREAD_S = 5.0
# Pause after the server refused something: another try does not help soon, and no caller waits.
RETRY_S = 1.0
# Operations in one transaction: some 20 kB, far from the server's limit of 1 MB, and no server is
# busy with one for long.
BATCH = 250
