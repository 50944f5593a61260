"""The CONTAINER task type: an image runs at an engine (docker, podman) or in a Kubernetes cluster.

``kind`` has the type and its fields; the API imports it alone. ``run`` is
the work in the process of an attempt. What the worker's administrator allows is in ``rules``, what
a container finds inside in ``contents``. ``local`` runs one at an ``engine`` of this machine,
``cluster`` a Job that ``job`` describes. Start reading in ``run``.
"""
