"""The logs of attempts: written, limited, served, kept and removed.

Start with ``files``; ``service`` serves them over gRPC, ``keeping`` says how long they stay.
"""
