"""Does rain delay departures? An analysis on Spark Connect, whose queries start no JVM.

::

    shoal data-source set lake --kind spark --project examples
    shoal apply examples/weather.py
    shoal run weather --project examples -p month=2 --wait

``lake`` has no host: the worker starts a Spark Connect server for the project when the first task
asks for it, and keeps it. ``carriers`` is SQL. ``hours`` is a program with a session at the same
server, where the work is done; only the answer comes back.
"""

from pathlib import Path

from shoal.client import Parameter, Python, Sql, Workflow, python_task

DATA = Path(__file__).resolve().parent / "data"
FLIGHTS, WEATHER = DATA / "flights-2013-02-03.csv.gz", DATA / "weather-2013-02-03.csv.gz"

CARRIERS = f"""
CREATE TEMPORARY VIEW flights USING csv
OPTIONS (path '{FLIGHTS}', header true, inferSchema true, nullValue 'NA');
SELECT carrier, count(*) AS flights, round(avg(dep_delay), 1) AS minutes
FROM flights WHERE month = ${{month}} AND dep_delay IS NOT NULL
GROUP BY carrier ORDER BY minutes DESC LIMIT 3
"""

HOURS = f"""
import json, os
from pyspark.sql import SparkSession, functions as f

spark = SparkSession.builder.getOrCreate()

def read(path):
    return spark.read.csv(path, header=True, inferSchema=True, nullValue="NA")

flights = read({str(FLIGHTS)!r}).where(f.col("month") == int(os.environ["month"]))
rain = read({str(WEATHER)!r}).select("origin", "time_hour", (f.col("precip") > 0).alias("wet"))
found = (
    flights.join(rain, ["origin", "time_hour"])
    .groupBy("wet")
    .agg(f.count("dep_delay").alias("flights"), f.avg("dep_delay").alias("minutes"))
)
found.show()
minutes = {{row.wet: round(row.minutes, 1) for row in found.collect()}}
with open(os.environ["SHOAL_OUTPUT"], "a") as file:
    print(json.dumps({{"wet": minutes.get(True), "dry": minutes.get(False)}}), file=file)
"""

with Workflow(
    "weather",
    project="examples",
    description="Compares departures in wet and in dry hours of one month.",
    parameters={"month": Parameter("2", type="integer", description="2 or 3, of 2013.")},
) as weather:
    carriers = Sql(
        "carriers",
        data_source="lake",
        sql=CARRIERS,
        types={"month": "integer"},
        result="rows",
        timeout="10m",
    )
    hours = Python("hours", script=HOURS, spark="connect", timeout="10m")

    @python_task(parameters={"rows": "${rows}", "wet": "${wet}", "dry": "${dry}"})
    def report(rows: str, wet: str, dry: str) -> None:
        """Print what was found."""
        import json

        print(f"Departures were {wet} minutes late in rain, {dry} without.")
        for row in json.loads(rows):
            print(f"{row['carrier']}  {row['minutes']} minutes, {row['flights']} flights")

    [carriers, hours] >> report()
