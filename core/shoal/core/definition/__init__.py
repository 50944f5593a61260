"""What a workflow is: the versioned model, its fields, parameters and graph.

Start with ``model``. Everything that a definition can say is a field there; what it may not say is
checked in ``shoal.core.checks``.
"""
