"""The API as a contract: its description, what it promises, and the client that follows from both.

``python -m tests.contract`` (``make contract``) writes all three anew after a change of a route:

- ``docs/openapi.json``, the description (``described``);
- ``docs/openapi-promises.txt``, what callers rely on, line by line (``promises``): a line that is
  gone breaks them, and is refused without ``--break``;
- ``client/shoal/client/rest/operations/generated``, types and calls of the client (``client``).

``tests/unit/api/test_contract.py`` fails as long as one of them is behind.
"""
