"""A notebook as a script: publish a workflow, run it for some days, look at what came out.

::

    shoal up --detach
    .venv/bin/python examples/notebook.py

The lines ``# %%`` are cells: editors that know them run one cell at a time.
"""

# %% Find the cluster: that of $SHOAL_URL, or the one that `shoal up` has started here.
import statistics
from pathlib import Path

from shoal.client import ShoalClient, load_definitions

shoal = ShoalClient.connect()
print(f"{len(shoal.get_cluster()['workers'])} workers at {shoal.url}")

# %% Publish what examples/airports.py defines; what has not changed keeps its version.
folder = Path(__file__).resolve().parent
for definition in load_definitions([folder / "airports.py"]).definitions:
    shoal.publish(definition.spec)

# %% Start three days at once, then wait for all of them.
days = ["2013-02-08", "2013-03-08", "2013-03-28"]
commands = [shoal.start("examples", "airports", parameters={"date": day}) for day in days]
runs = [shoal.wait(shoal.started(command), timeout_s=600) for command in commands]

# %% What the last task of each run gave on.
worst = [shoal.outputs(run["id"], "compare") for run in runs]
for day, run, found in zip(days, runs, worst, strict=True):
    print(f"{day}  run {run['id']} {run['state']:9}  {found['worst']} {found['minutes']} minutes")

# %% Something to think about.
minutes = [float(found["minutes"]) for found in worst]
print(f"The worst airport was {statistics.mean(minutes):.0f} minutes late on average.")
