"""The SSH task type: a script runs on another host.

``kind`` has the type and its fields; the API imports it alone. In the process of
an attempt ``run`` signs in (``host``), ends what earlier attempts have left there, and sends the
script. ``remote`` has the programs of the other side: one waits for the script and reports how it
ended, out of reach of parameters and script. Everything that the script starts carries the tag of
its task in its environment, by which it is found and ended. Start reading in ``run``.
"""
