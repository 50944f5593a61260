"""What tests of all kinds share: servers to test against, proxies, clocks, ways to wait.

Start with ``zookeeper``, ``databases`` and ``waiting``. Nothing here knows what is tested.
"""
