"""What attempts tell people: their logs, written, limited, served, kept and removed; progress.

Start with ``files``; ``service`` serves logs over gRPC, ``progress`` how far the work is,
``retention`` deletes old ones, ``archive`` copies them.
"""
