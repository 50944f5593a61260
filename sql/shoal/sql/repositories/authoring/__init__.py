"""What people do with definitions around their publishing: drafts, names, archive, deletion.

``references`` finds the workflows that name a workflow, ``lifecycle`` changes what a workflow is
called and whether it is in use, ``drafts`` keeps what is not published yet, ``layouts`` where
tasks are on the canvas.
"""
