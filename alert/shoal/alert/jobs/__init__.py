"""What alert servers do, each job in one of them: ``reading`` events, ``attention`` to what goes
on, and ``sending`` a share of the messages. ``catalog`` has the definitions of all projects.
"""
