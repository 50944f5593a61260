"""The alert server: reads events, matches them with rules, and notifies receivers.

Start reading at ``main.py``. ``jobs`` has what a server does, and shares with the others;
``conditions`` polls for what no event reports, ``channels`` sends messages. Page: docs/alerts.md.
"""
