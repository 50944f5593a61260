"""What the command line shows of many runs at a glance, of one run in time, and before its start.

Start reading at ``today.py``.
"""
