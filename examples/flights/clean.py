"""Clean one day of flights, join the weather of the hour, aggregate, write Parquet.

Run by hand: ``spark-submit --master 'local[*]' clean.py --date 2013-03-08 --output output``

Reads the CSV files of ``<output>/<date>/raw`` and overwrites, for that date only, in
``<output>/<date>/clean`` (each table one file in a fixed order: a second run gives the same):

``flights``        one row per flight, with its status and the weather at its airport in that hour
``hours``          per scheduled local hour: flights by status, and the weather over the airports
``groups``         per airport, airline and destination: flights by status and their delays
``cleaning.json``  what was wrong in the data, what was done about it, and the rows concerned

Units are those of the publishers: minutes, miles, °F, mph, inches. A flight is *on time* when it
left less than 15 minutes behind schedule, as the US Bureau of Transportation Statistics counts.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_INT, _DOUBLE, _TEXT, _TIME = IntegerType(), DoubleType(), StringType(), TimestampType()
MALFORMED = "malformed"  # Spark puts the raw line here when a field does not fit its type

FLIGHTS = StructType(
    [
        StructField(name, kind)
        for name, kind in (
            ("year", _INT),
            ("month", _INT),
            ("day", _INT),
            ("dep_time", _INT),
            ("sched_dep_time", _INT),
            ("dep_delay", _INT),
            ("arr_time", _INT),
            ("sched_arr_time", _INT),
            ("arr_delay", _INT),
            ("carrier", _TEXT),
            ("flight", _INT),
            ("tailnum", _TEXT),
            ("origin", _TEXT),
            ("dest", _TEXT),
            ("air_time", _INT),
            ("distance", _INT),
            ("hour", _INT),
            ("minute", _INT),
            ("time_hour", _TIME),
            (MALFORMED, _TEXT),
        )
    ]
)
WEATHER = StructType(
    [
        StructField(name, kind)
        for name, kind in (
            ("origin", _TEXT),
            ("year", _INT),
            ("month", _INT),
            ("day", _INT),
            ("hour", _INT),
            ("temp", _DOUBLE),
            ("dewp", _DOUBLE),
            ("humid", _DOUBLE),
            ("wind_dir", _INT),
            ("wind_speed", _DOUBLE),
            ("wind_gust", _DOUBLE),
            ("precip", _DOUBLE),
            ("pressure", _DOUBLE),
            ("visib", _DOUBLE),
            ("time_hour", _TIME),
            (MALFORMED, _TEXT),
        )
    ]
)
AIRLINES = StructType([StructField("carrier", _TEXT), StructField("name", _TEXT)])

ON_TIME_BELOW_MIN = 15
VERY_LATE_FROM_MIN = 60
STATUSES = ("on_time", "late", "very_late", "cancelled")
# The strongest gust ever measured at a US airport weather station is far below this.
MAX_WIND_MPH = 200.0
# What is looked for, what is done about it, and the rows concerned.
Rules = Sequence[tuple[str, str, Column]]
WEATHER_VALUES = ("temp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")


class Cleaning:
    """The account of what was wrong: every rule adds a line, also when it met no row."""

    def __init__(self) -> None:
        self.lines: list[dict[str, str | int]] = []

    def count(self, table: str, frame: DataFrame, rules: Rules) -> None:
        """Count the rows that meet each rule, all rules in one pass over ``frame``."""
        counts = frame.agg(
            *(F.count_if(met).alias(str(number)) for number, (_, _, met) in enumerate(rules))
        ).head()
        assert counts is not None, "an aggregate without groups always gives one row"
        for (problem, action, _), rows in zip(rules, counts, strict=True):
            self.lines.append({"table": table, "problem": problem, "action": action, "rows": rows})

    def write(self, path: Path) -> None:
        """Replace ``path`` by the account as JSON, in one step."""
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(self.lines, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)


def read_csv(spark: SparkSession, path: Path, schema: StructType) -> DataFrame:
    """Read ``path`` by ``schema``; fails when the header names other columns than the schema."""
    # Spark reads paths as patterns, so a folder called "a[1]" needs its brackets quoted.
    literal = re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path))
    frame = spark.read.csv(
        f"file://{literal}",
        schema=schema,
        header=True,
        enforceSchema=False,
        nullValue="NA",
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=MALFORMED,
    )
    return frame.cache()  # small; and the column of malformed lines can only be asked for once read


def clean_flights(raw: DataFrame, cleaning: Cleaning) -> DataFrame:
    """Leave out unreadable and repeated flights, give every other one its status."""
    unreadable = F.col(MALFORMED).isNotNull()
    same_flight = Window.partitionBy(
        unreadable, "carrier", "flight", "origin", "sched_dep_time"
    ).orderBy(F.col("dep_time").asc_nulls_last(), "dest", "tailnum")
    again = ~unreadable & (F.col("copy") > 1)
    delay, status = F.col("dep_delay"), F.col("status")
    flights = raw.withColumn("copy", F.row_number().over(same_flight)).withColumn(
        "status",
        F.when(unreadable | again, "left out")
        .when(F.col("dep_time").isNull(), "cancelled")
        .when(delay < ON_TIME_BELOW_MIN, "on_time")
        .when(delay < VERY_LATE_FROM_MIN, "late")
        .when(delay.isNotNull(), "very_late")
        .otherwise("unknown"),
    )
    kept = status != "left out"
    departed = kept & (status != "cancelled")
    cleaning.count(
        "flights",
        flights,
        (
            ("line does not fit the columns", "left out", unreadable),
            ("flight listed twice", "first one kept", again),
            ("no departure time", "counted as cancelled", status == "cancelled"),
            ("departed, but the delay is missing", "status unknown", status == "unknown"),
            (
                "departed, but no arrival time at the destination",
                "kept: diverted or not reported",
                departed & F.col("arr_delay").isNull(),
            ),
            ("aircraft unknown", "kept", kept & F.col("tailnum").isNull()),
        ),
    )
    return flights.where(kept)


def clean_weather(raw: DataFrame, cleaning: Cleaning) -> DataFrame:
    """Leave out unreadable and repeated reports, take out wind speeds that cannot be."""
    unreadable = F.col(MALFORMED).isNotNull()
    same_hour = Window.partitionBy(unreadable, "origin", "time_hour").orderBy(
        "temp", "visib", "wind_speed"
    )
    again = ~unreadable & (F.col("copy") > 1)
    impossible = {
        column: (F.col(column) < 0) | (F.col(column) > MAX_WIND_MPH)
        for column in ("wind_speed", "wind_gust")
    }
    weather = raw.withColumn("copy", F.row_number().over(same_hour))
    cleaning.count(
        "weather",
        weather,
        (
            ("line does not fit the columns", "left out", unreadable),
            ("hour reported twice", "one kept", again),
            *(
                (f"{column} outside 0 to {MAX_WIND_MPH:.0f} mph", "value removed", rows)
                for column, rows in impossible.items()
            ),
            *(
                (f"{column} missing", "kept", ~unreadable & F.col(column).isNull())
                for column in ("temp", "wind_speed", "visib", "pressure")
            ),
        ),
    )
    return weather.where(~unreadable & ~again).withColumns(
        {column: F.when(~rows, F.col(column)) for column, rows in impossible.items()}
    )


def join_weather(
    flights: DataFrame, weather: DataFrame, airlines: DataFrame, cleaning: Cleaning
) -> DataFrame:
    """Add the weather at the origin in the scheduled hour. Joined in UTC: local hours repeat."""
    reports = weather.select("origin", "time_hour", *WEATHER_VALUES, F.lit(True).alias("reported"))
    joined = flights.join(F.broadcast(reports), ["origin", "time_hour"], "left").join(
        F.broadcast(airlines), "carrier", "left"
    )
    cleaning.count(
        "flights",
        joined,
        (
            ("no weather report for its hour", "weather left empty", F.col("reported").isNull()),
            ("airline code without a name", "code used as name", F.col("airline").isNull()),
        ),
    )
    return joined.select(
        F.make_date("year", "month", "day").alias("date"),
        "hour",
        (F.col("hour") * 60 + F.col("minute")).alias("scheduled_min"),  # since local midnight
        "origin",
        "dest",
        "carrier",
        F.coalesce("airline", "carrier").alias("airline"),
        "flight",
        "tailnum",
        "status",
        "dep_delay",
        "arr_delay",
        "distance",
        *WEATHER_VALUES,
    )


def mean(column: str) -> Column:
    """Rounded, because the last digits of a sum of floats depend on the order of its rows."""
    return F.round(F.avg(column), 4)


def by_status() -> list[Column]:
    """Aggregates over flights: how many, how many of each status, the delay of those that left."""
    return [
        F.count("*").alias("flights"),
        *(F.count_if(F.col("status") == status).alias(status) for status in STATUSES),
        F.median("dep_delay").alias("median_delay_min"),
        mean("dep_delay").alias("mean_delay_min"),
    ]


def per_hour(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Flights by local scheduled hour, beside the weather over the airports in that hour."""
    sky = weather.groupBy("hour").agg(
        mean("temp").alias("temp_f"),
        F.min("visib").alias("min_visibility_mi"),
        mean("visib").alias("visibility_mi"),
        mean("wind_speed").alias("wind_mph"),
        F.max("wind_gust").alias("max_gust_mph"),
        mean("precip").alias("precip_in"),
    )
    hours = flights.groupBy("hour").agg(*by_status())
    return hours.join(sky, "hour", "full_outer").fillna(0, ["flights", *STATUSES])


def per_group(flights: DataFrame) -> DataFrame:
    """The same figures for each airport, each airline and each destination."""
    parts = [
        flights.groupBy(F.col(column).alias("name"))
        .agg(*by_status(), mean("distance").alias("mean_distance_mi"))
        .select(F.lit(kind).alias("kind"), "*")
        for kind, column in (("airport", "origin"), ("airline", "airline"), ("destination", "dest"))
    ]
    return parts[0].unionByName(parts[1]).unionByName(parts[2])


def write(frame: DataFrame, folder: Path, order: list[str]) -> None:
    """Overwrite ``folder`` with one Parquet file, in ``order``."""
    frame.coalesce(1).sortWithinPartitions(order).write.mode("overwrite").parquet(
        f"file://{folder}"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Clean and aggregate one day of flights.")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--output", required=True, type=Path, help="folder of the results")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    day = (args.output / args.date.isoformat()).resolve()
    raw, clean = day / "raw", day / "clean"
    if not (raw / "flights.csv").is_file():
        raise SystemExit(f"clean: {raw / 'flights.csv'} is missing; run fetch for this date first")
    spark = (
        SparkSession.builder.appName(f"flights {args.date}")
        .config("spark.sql.session.timeZone", "UTC")
        # A day is a thousand rows: the default of 200 partitions would only cost time.
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    cleaning = Cleaning()
    airlines = read_csv(spark, raw / "airlines.csv", AIRLINES).withColumnRenamed("name", "airline")
    weather = clean_weather(read_csv(spark, raw / "weather.csv", WEATHER), cleaning).cache()
    flights = clean_flights(read_csv(spark, raw / "flights.csv", FLIGHTS), cleaning).cache()
    joined = join_weather(flights, weather, airlines, cleaning).cache()

    write(joined, clean / "flights", ["scheduled_min", "origin", "carrier", "flight"])
    write(per_hour(joined, weather), clean / "hours", ["hour"])
    write(per_group(joined), clean / "groups", ["kind", "name"])
    cleaning.write(clean / "cleaning.json")

    print(f"{args.date}: {joined.count()} flights, {weather.count()} hourly weather reports")
    for line in cleaning.lines:
        if line["rows"]:
            print(f"  {line['rows']:5d} {line['table']}: {line['problem']} ({line['action']})")
    print(f"written to {clean}")
    spark.stop()


if __name__ == "__main__":
    main()
