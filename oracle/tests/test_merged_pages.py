"""Pages of many writers end in one file: other readers find the rows that were there, also where they skip by filters."""

import random

import duckdb
import pyarrow as pa
import pyarrow.compute  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
from deltalake import DeltaTable

from foreign import SCHEMA, Habits, Writers
from judgement import deltalake_rows
from table import Table

WRITERS = ["pyarrow", "duckdb", "deltalake"]
# The first two meet all writers.
SEEDS = [seed if seed < 2 else pytest.param(seed, marks=pytest.mark.full) for seed in range(16)]


@pytest.fixture
def table(tmp_path):
    """An empty table that no Spark has seen."""
    path = str(tmp_path / "t")
    DeltaTable.create(path, SCHEMA)
    return Table(None, path)


def merged(table, lakesmith, files):
    """Compacts the table to one file. Gives its path."""
    metrics = lakesmith.optimize(table, "--verify")["metrics"]
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (files, 1)
    return f"{table}/{lakesmith.files(table)[0]['path']}"


def texts(rows):
    """Every row as text, which tells null, NaN and both zeros apart, by its number."""
    return list(map(repr, rows.sort_by("id").to_pylist()))


DUCKDB = duckdb.connect()


def by_duckdb(query, *values):
    return DUCKDB.execute(query, list(values))


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_a_file_from_many_writers(table, lakesmith, seed):
    chance = random.Random(seed)
    habits, rows = Habits(chance), 0
    writers = Writers(table, chance)
    chosen = chance.sample(WRITERS, 3) if seed < 2 else [chance.choice(WRITERS) for _ in range(chance.randint(2, 6))]
    for writer in chosen:
        count = chance.choice([50, 3000, 6000])
        writers.append(writer, habits.rows(rows, rows + count), chance.sample(["id", "few", "many", "d", "d18", "i"], chance.randint(0, 3)))
        rows += count
    file = merged(table, lakesmith, len(chosen))
    expected = habits.rows(0, rows)
    assert texts(deltalake_rows(table).cast(SCHEMA)) == texts(expected)
    assert texts(pa.parquet.read_table(file).cast(SCHEMA)) == texts(expected)
    for number in (chance.randrange(rows), chance.randrange(rows), rows + 5):
        wanted = habits.row(number)
        for name in ("id", "few", "many", "i", "d", "f", "dt", "ts", "d9", "d18", "d38", "bin"):
            value = wanted[name]
            if value is None or value != value:
                continue
            count = by_duckdb(f"SELECT count(*) FROM read_parquet(?) WHERE {name} = ?", file, value).fetchone()[0]
            assert count == pa.compute.sum(pa.compute.equal(expected[name], pa.scalar(value, SCHEMA.field(name).type))).as_py(), (name, value)


@pytest.mark.parametrize("writer", WRITERS)
def test_bloom_filters_survive(table, lakesmith, writer):
    chance, wanted = random.Random(writer), {"few", "i", "d"}
    habits = Habits(chance)
    habits.distinct, habits.null_every = 500, 10
    writers = Writers(table, chance)
    # Other files have none.
    writers.append("pyarrow", habits.rows(0, 2000))
    writers.append(writer, habits.rows(10_000, 13_000), wanted)
    writers.append("pyarrow", habits.rows(20_000, 24_000))
    filtered = having_filters([f"{table}/{file['path']}" for file in lakesmith.files(table)])
    assert "few" in filtered and (wanted <= filtered or writer == "duckdb")
    file = merged(table, lakesmith, 3)
    assert having_filters([file]) == filtered

    def excluded(column, values):
        """How many of the values DuckDB rules out for the whole file by the filters alone."""
        query = "SELECT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe(?, ?, ?)"
        return sum(by_duckdb(query, file, column, value).fetchone()[0] for value in values)

    numbers = [*range(2000), *range(10_000, 13_000), *range(20_000, 24_000)]
    for column in sorted(filtered & {"few", "i", "d", "many", "bin"}):
        assert excluded(column, {habits.row(number)[column] for number in numbers[::101]} - {None}) == 0, column
    assert excluded("few", [f"kind {number}" for number in range(500, 600)]) > 90
    found = by_duckdb("SELECT count(*) FROM read_parquet(?) WHERE few = 'kind 123'", file).fetchone()[0]
    assert found == sum(habits.row(number)["few"] == "kind 123" for number in numbers)


def having_filters(files):
    """Root columns that have a bloom filter in one of the files."""
    query = "SELECT DISTINCT split_part(path_in_schema, ',', 1) FROM parquet_metadata(?) WHERE bloom_filter_offset IS NOT NULL"
    return {name for name, in by_duckdb(query, files).fetchall()}
