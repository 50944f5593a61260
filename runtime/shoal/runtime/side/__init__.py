"""Work on texts of users beside a service: in processes with limits of time and memory.

Start reading at ``process``. ``templates`` is what services use it for.
"""
