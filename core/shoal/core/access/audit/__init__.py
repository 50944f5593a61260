"""The audit: what was done, who did it, and the hashes that show that it was not changed.

Start reading at ``entries.py``; ``chain.py`` links entries and verifies links.
"""
