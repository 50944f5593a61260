"""HTTP itself: authentication, bodies, problems, paging, event streams, the description.

Nothing here knows a workflow.
"""
