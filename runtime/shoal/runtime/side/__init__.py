"""Work beside the event loop of a service, which must not hold it up.

Texts of users are worked on in processes with limits of time and memory: start reading at
``process``. ``templates`` is what services use it for. Calls that may hang have a thread of their
own (``own_thread``).
"""
