"""Pictures of every page of the web UI, taken of a real cluster: ``python -m tests.screenshots``.

``seed`` fills the cluster with projects, runs and all that the pages show; ``ui/e2e/pictures.mjs``
looks at them in Chromium.
"""
