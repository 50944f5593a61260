"""The alert server: reads events, finds what rules are about, and tells receivers.

Start reading at ``main.py``. ``jobs`` has what a server does, and shares with the others;
``watching`` looks for what no event tells, ``channels`` sends messages. docs/alerts.md is its page.
"""
