"""The jobs of alert servers, each run by one of them at a time.

``event_reader`` makes alerts of events, ``reminders`` repeats and escalates open alerts, and
``sender`` delivers one share of the messages. ``catalog`` has the definitions of all projects.
"""
