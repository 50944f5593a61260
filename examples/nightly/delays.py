"""Delays of each airline on one day; the output ``delays`` is a JSON list of objects."""

import json
import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

with open(os.environ["SHOAL_PARAMETERS"], encoding="utf-8") as file:
    given = json.load(file)

spark = SparkSession.builder.getOrCreate()
flights = spark.read.csv(given["flights"], header=True, inferSchema=True, nullValue="NA")
lines = spark.sparkContext.parallelize(given["airlines"].splitlines())
airlines = spark.read.csv(lines, header=True)

delays = (
    flights.where(F.make_date("year", "month", "day") == F.lit(given["date"]).cast("date"))
    .where("dep_delay IS NOT NULL")
    .join(airlines, "carrier", "left")
    .groupBy(F.coalesce("name", "carrier").alias("airline"))
    .agg(F.count("*").alias("flights"), F.avg("dep_delay").alias("minutes"))
    .orderBy("airline")
)
rows = [row.asDict() for row in delays.collect()]
print(f"{len(rows)} airlines on {given['date']}")
with open(os.environ["SHOAL_OUTPUT"], "a", encoding="utf-8") as file:
    file.write(json.dumps({"delays": json.dumps(rows)}) + "\n")
