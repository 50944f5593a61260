"""What tests of all kinds share: servers to test against, proxies, clocks, ways to wait.

Start with ``zookeeper``, ``databases`` and ``waiting``. Nothing here judges what is tested.
"""
