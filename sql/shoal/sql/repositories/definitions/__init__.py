"""What people define: projects, workflows, schedules, calendars, groups, secrets, backfills.

Data sources too: where a project's databases and services are found; and environments, which are
the cluster's.
"""
