"""Every operation of the API as a method, for programs that wait and for those that do not.

``generated`` is made from the description of the API (``make contract``): its types, and for each
operation a function that says what is to be sent (``Call``), and how the answer is to be read. The
clients that send it are thin: ``Operations`` over a ``Connection``, ``AsyncOperations`` over an
``AsyncConnection``. How a request is repeated, and what an answer means, is in ``exchange`` for
both.

A command needs few of the operations, and types are for mypy alone. So the functions are in a
module for each tag of the API, which is imported with the first use of one, and nothing imports the
types when it runs.
"""
