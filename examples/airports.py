"""Each airport by itself and all at the same time, then together: a MAP over the parts of a day.

::

    shoal apply examples/airports.py
    shoal run airports --project examples -p date=2013-02-08 --wait

``airports`` lists the airports of the day, MAP starts the workflow ``airport`` once for each of
them, three at a time, and ``compare`` gets what the runs gave on: a list of each output, in the
order of the items. An airport that fails is tried again alone; the others keep their results.
"""

import datetime as dt
from pathlib import Path

from shoal.client import Map, Parameter, Workflow, python_task

SOURCE = str(Path(__file__).resolve().parent / "data" / "flights-2013-02-03.csv.gz")
DATE = Parameter("2013-02-08", type="date", description="Local day, 2013-02-01 to 2013-03-31.")

with Workflow(
    "airport",
    project="examples",
    description="Measures the departures of one airport on one day.",
    parameters={"item": Parameter("EWR"), "date": DATE, "source": SOURCE},
) as airport:

    @python_task
    def measure(item: str, date: dt.date, source: str) -> dict[str, object]:
        """Count the flights that left and add up their delays."""
        import csv
        import datetime as dt
        import gzip

        with gzip.open(source, "rt") as file:
            flights = [
                row
                for row in csv.DictReader(file)
                if row["origin"] == item
                and dt.date(int(row["year"]), int(row["month"]), int(row["day"])) == date
            ]
        delays = [int(row["dep_delay"]) for row in flights if row["dep_delay"] != "NA"]
        if not delays:
            raise SystemExit(f"no flight left {item} on {date}")
        print(f"{item}: {len(delays)} of {len(flights)} flights left")
        return {
            "airport": item,
            "left": len(delays),
            "delay": round(sum(delays) / len(delays), 1),
        }

    measure()

with Workflow(
    "airports",
    project="examples",
    description="Compares the airports of New York on one day.",
    parameters={"date": DATE, "source": SOURCE},
) as airports:

    @python_task
    def find(date: dt.date, source: str) -> dict[str, object]:
        """List the airports from which flights were to leave."""
        import csv
        import datetime as dt
        import gzip

        with gzip.open(source, "rt") as file:
            found = {
                row["origin"]
                for row in csv.DictReader(file)
                if dt.date(int(row["year"]), int(row["month"]), int(row["day"])) == date
            }
        if not found:
            raise SystemExit(f"no flights on {date}: days are 2013-02-01 to 2013-03-31")
        return {"codes": sorted(found)}

    each = Map(
        "each",
        runs="airport",
        items="${codes}",
        parallel=3,
        given={"date": "${date}", "source": "${source}"},
    )

    @python_task(parameters={"names": "${airport}", "left": "${left}", "delays": "${delay}"})
    def compare(date: dt.date, names: str, left: str, delays: str) -> dict[str, object]:
        """Print a line for each airport, the most delayed one first."""
        import json

        # A MAP task gives on texts, in a JSON list for each output.
        lists = (json.loads(one) for one in (delays, names, left))
        rows = sorted(zip(*lists, strict=True), key=lambda row: -float(row[0]))
        print(f"Departures from New York on {date}")
        for delay, name, flights in rows:
            print(f"{name}  {flights:>4} flights left, {float(delay):6.1f} minutes late on average")
        return {"worst": rows[0][1], "minutes": rows[0][0]}

    find() >> each >> compare()
