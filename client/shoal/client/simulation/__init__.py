"""What the simulator is told of a real cluster, over REST.

``collecting`` makes a model of it, ``recorded`` reads a day that was, to compare with. The
simulator itself is ``shoal.insight.simulate``.
"""
