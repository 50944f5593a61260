"""The jobs: functions from rows of the history to a table of results.

A module for each job, or for two that share their rows. What is of a workflow is made from a part,
which has all current rows of some workflows; what is of an hour from the loads of a day. A job
chooses the days by itself and never looks at a clock. docs/insight.md has all columns and formulas.
"""
