"""The audit: what was done, by whom, and the chain of hashes that shows that nobody changed it.

Start reading at ``entries.py``; ``chain.py`` links entries and verifies links.
"""
