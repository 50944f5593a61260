"""What a task's processes find around them.

``variables`` builds the environment of a process from nothing. ``named`` is what the environment
adds that the workflow names, ``setup`` the shell that sources its setup before the program.
"""
