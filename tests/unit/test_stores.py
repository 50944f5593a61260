"""docs/retention.md names every store that can grow: a new one has to have a rule there."""

import re
from pathlib import Path

from shoal.coordination.cluster import layout
from shoal.insight.history.tables import TABLES
from shoal.sql.schema.tables import metadata

PAGE = Path(__file__).parents[2].joinpath("docs/retention.md").read_text()
# The first cell of each row of the tables of "Every store": names in backticks.
NAMED = {
    name
    for line in PAGE.partition("## 5. Every store")[2].partition("\n## 6.")[0].splitlines()
    if line.startswith("|")
    for name in re.findall(r"`([^`]+)`", line.split("|")[1])
}


def test_each_table_of_the_database_is_there_with_its_rule() -> None:
    assert set(metadata.tables) - NAMED == set()


def test_each_tree_of_zookeeper_is_there() -> None:
    paths = {
        value
        for name, value in vars(layout).items()
        if name.isupper() and isinstance(value, str) and value.startswith("/")
    }
    named = {f"/{name.split('/')[1]}" for name in NAMED if name.startswith("/")}
    assert {f"/{path.split('/')[1]}" for path in paths} - named == set()
    assert paths


def test_each_table_of_the_history_is_there() -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith("| [the exported history]"))
    assert [table.name for table in TABLES if f"`{table.name}`" not in line] == []
