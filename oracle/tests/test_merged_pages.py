"""Pages of many writers end in one file: Spark and others find the rows that were there, also where they skip by filters."""

import collections
import functools
import random
import uuid

import duckdb
import pyarrow as pa
import pyarrow.compute  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame

from foreign import SCHEMA, Habits, Writers
from judgement import deltalake_rows
from table import Table, named, row_text

WRITERS = ["spark", "pyarrow", "duckdb", "deltalake"]
# The first two meet all writers; the first does without most conditions.
SEEDS = [seed if seed < 1 else pytest.param(seed, marks=pytest.mark.full) for seed in range(24)]


@pytest.fixture
def table(spark, tmp_path):
    """An empty table, under a path that no other test has: Spark remembers what it has seen under a path."""
    path = str(tmp_path / uuid.uuid4().hex)
    DeltaTable.create(path, SCHEMA)
    return Table(spark, path)


def merged(table, lakesmith, files, *args):
    """Compacts the table to one file. Gives its path."""
    metrics = lakesmith.optimize(table, "--verify", *args)["metrics"]
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (files, 1)
    return f"{table}/{lakesmith.files(table)[0]['path']}"


def texts(rows):
    """Every row as text, which tells null, NaN and both zeros apart, by its number."""
    return list(map(repr, rows.sort_by("id").to_pylist()))


DUCKDB = duckdb.connect()


def by_duckdb(query, *values):
    return DUCKDB.execute(query, list(values))


def conditions(habits, chance, rows):
    """Filters that hit and miss single values, ranges, nulls, NaN and both zeros."""
    for number in (chance.randrange(rows), rows + 5):
        row = habits.row(number)
        yield f"id = {number}"
        yield f"id IN ({', '.join(str(chance.randrange(-rows, 2 * rows)) for _ in range(chance.choice([3, 30])))})"
        yield f"many = '{row['many']}'"
        yield f"ts = timestamp'{row['ts']:%Y-%m-%d %H:%M:%S.%f}'"
        yield f"d38 = {row['d38']:f}BD"
        if row["few"] is not None:
            yield f"few = '{row['few']}'"
            yield f"few IN ('{row['few']}', 'kind', '{habits.row(chance.randrange(rows))['few']}')"
            yield f"i = {row['i']}"
            yield f"dt >= date'{row['dt']}'"
            yield f"d18 = {row['d18']:f}BD AND bin = X'{row['bin'].hex()}'"
            yield f"st.y.t <=> '{row['few'][5:]}'"
    number = chance.randrange(rows)
    yield f"id < {number} AND f > 1F"
    yield f"ts > timestamp'{habits.row(number)['ts']:%Y-%m-%d %H:%M:%S.%f}' AND few IS NOT NULL"
    yield f"d >= {number / 7}D"
    yield f"d < {number / 7}D"
    yield f"i > {chance.randrange(-(2**30), 2**30)}"
    yield f"st.x BETWEEN {number} AND {number + 3}"
    for column in ("d", "f", "st.y.z"):
        suffix = "F" if column == "f" else "D"
        yield f"{column} = 0{suffix}"
        yield f"{column} = -0{suffix}"
        yield f"{column} <= -0{suffix}"
        yield f"{column} <> 0{suffix}"
        yield f"{column} = {'float' if column == 'f' else 'double'}('NaN')"
        yield f"{column} > 1e30{suffix}"
        yield f"{column} IS NULL"
    yield "few IS NULL"
    yield "few LIKE 'kind 1%'"
    yield f"many LIKE '{habits.row(number)['many'][:3]}%'"
    yield "few = 'kind' OR s < -498"
    yield "NOT (few = 'kind 1' OR few IS NULL)"
    yield "b AND d9 < -4"
    yield "ls IS NULL"
    yield "size(ls) = 3 AND mp['a'] IS NOT NULL"


def plain_copy(table, rows):
    """The rows in a table beside it, by one writer at once."""
    path = f"{table}-plain"
    DeltaTable.create(path, SCHEMA)
    write_deltalake(path, rows, mode="append")
    return Table(table.spark, path)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_and_filters_of_a_file_from_many_writers(table, lakesmith, conf, seed):
    chance = random.Random(seed)
    habits, rows = Habits(chance), 0
    writers = Writers(table, chance, conf)
    chosen = chance.sample(WRITERS, 4) if seed < 2 else [chance.choice(WRITERS) for _ in range(chance.randint(2, 6))]
    for writer in chosen:
        count = chance.choice([50, 3000, 6000])
        writers.append(writer, habits.rows(rows, rows + count), chance.sample(["id", "few", "many", "d", "f", "d18", "i"], chance.randint(0, 3)))
        rows += count
    twin = table.twin()
    groups = ["--row-group-rows", chance.choice([1000, 1 << 20])]
    file = merged(table, lakesmith, len(chosen), *groups)
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
    # Spark has no Brotli.
    if file.endswith(".br.parquet"):
        table = twin
        file = merged(table, lakesmith, len(chosen), *groups, "--compression", "zstd")
    wheres = list(conditions(habits, chance, rows))
    spark_finds(table, file, plain_copy(table, expected), chance.sample(wheres, 12) if seed == 0 else wheres, conf, chance)


def spark_finds(table, file, plain, wheres, conf, chance):
    """Asserts that Spark reads the same rows of both tables, and under each condition, by either of its readers."""
    # Kept apart from any file, so nothing is skipped here.
    kept = plain.frame().localCheckpoint()
    counts = kept.selectExpr(*(f"count_if({where})" for where in wheres)).first()
    assert sum(count > 0 for count in counts) >= len(counts) / 2
    rows, expected = plain.fingerprint(), found(kept, wheres, counts)
    conf("spark.sql.parquet.columnarReaderBatchSize", chance.choice([4096, 100]))
    for vectorized in ("true", "false"):
        conf("spark.sql.parquet.enableVectorizedReader", vectorized)
        conf("spark.sql.parquet.enableNestedColumnVectorizedReader", vectorized)
        assert table.fingerprint() == rows, vectorized
        assert found(table.spark.read.schema(kept.schema).parquet(file), wheres, counts) == expected, vectorized
        # By the log's statistics, too.
        for where in chance.sample(wheres, 3):
            assert table.frame().where(where).count() == counts[wheres.index(where)], (vectorized, where)


def found(frame, wheres, counts):
    """Rows that each condition finds: their number, and a hash of all of their columns where few are expected."""
    from pyspark.sql import functions as F

    def one(number):
        text = row_text(named(frame)) if counts[number] <= 100 else F.lit("")
        return frame.where(wheres[number]).select(F.lit(number).alias("number"), text.alias("row"))

    hashed = F.sum(F.xxhash64("row").cast("decimal(38,0)")).cast("string")
    result = {}
    # Every task of a query carries the metrics of the whole of it: a query of all conditions is slower than some of a few.
    for start in range(0, len(wheres), 8):
        some = functools.reduce(DataFrame.unionAll, map(one, range(start, min(start + 8, len(wheres)))))
        for number, count, rows in some.groupBy("number").agg(F.count("*"), hashed).collect():
            result[wheres[number]] = (count, rows)
    return result


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_both_zeros_are_found_where_a_dictionary_has_one(new_table, lakesmith, conf, zero):
    table = new_table(uuid.uuid4().hex)
    values = [zero, 1.0, -1.0] * 100
    rows = pa.table({"d": values, "f": pa.array(values, pa.float32()), "st": [{"z": value} for value in values]})
    for _ in range(2):
        write_deltalake(table.path, rows, mode="append")
    file = merged(table, lakesmith, 2)
    chunks = [pa.parquet.read_metadata(file).row_group(0).column(number) for number in range(3)]
    assert all(chunk.has_dictionary_page for chunk in chunks)
    # Of every three values, so many satisfy it.
    shares = {"= {zero}": 1, "= -{zero}": 1, "IN ({zero}, 5)": 1, "< {zero}": 1, "> -{zero}": 1}
    shares |= {"<= -{zero}": 2, "<= {zero}": 2, ">= {zero}": 2, ">= -{zero}": 2, "<> {zero}": 2, "<> -{zero}": 2}
    kinds = [("d", "D"), ("f", "F"), ("st.z", "D")]
    expected = {f"{column} {condition.format(zero=f'0{kind}')}": share * 200 for column, kind in kinds for condition, share in shares.items()}
    for vectorized in ("true", "false"):
        conf("spark.sql.parquet.enableVectorizedReader", vectorized)
        read = spark_reads(table.spark.read.parquet(file), list(expected))
        assert {where: hits for where, (hits, _) in read.items()} == expected, vectorized


@pytest.mark.parametrize("writer", [name if name in ("spark", "deltalake") else pytest.param(name, marks=pytest.mark.full) for name in WRITERS])
def test_bloom_filters_survive(table, lakesmith, conf, writer):
    chance, wanted = random.Random(writer), {"few", "i", "d"}
    habits = Habits(chance)
    habits.distinct, habits.null_every = 500, 10
    writers = Writers(table, chance, conf)
    # Other files have none.
    writers.append("pyarrow", habits.rows(0, 2000))
    writers.append(writer, habits.rows(10_000, 13_000), wanted)
    writers.append("pyarrow", habits.rows(20_000, 24_000))
    filtered = having_filters([f"{table}/{file['path']}" for file in lakesmith.files(table)])
    assert "few" in filtered and (wanted <= filtered or writer == "duckdb")
    file = merged(table, lakesmith, 3, "--compression", "zstd")
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

    rows = [habits.row(number) for number in numbers]
    zeros, no_numbers = sum(row["d"] == 0 for row in rows), sum(row["d"] is not None and row["d"] != row["d"] for row in rows)
    expected = {"d = 0D": zeros, "d = -0D": zeros, "d = double('NaN')": no_numbers, "few = 'kind 1234'": 0}
    for row in chance.sample(rows, 8):
        for name, suffix in (("i", ""), ("d", "D")):
            if row[name] is not None and row[name] == row[name]:
                expected[f"{name} = {row[name]}{suffix}"] = sum(other[name] == row[name] for other in rows)
    for k in range(123, 500, 53):
        expected[f"few = 'kind {k}'"] = sum(row["few"] == f"kind {k}" for row in rows)
    # All within the bounds.
    absent = set(range(1, 2**29, 2**24 + 1)) - {row["i"] for row in rows}
    expected |= {f"i = {number}": 0 for number in absent}
    for vectorized in ("true", "false"):
        conf("spark.sql.parquet.enableVectorizedReader", vectorized)
        read = spark_reads(table.spark.read.schema(table.frame().schema).parquet(file), list(expected))
        assert {where: hits for where, (hits, _) in read.items()} == expected, vectorized
        assert read["few = 'kind 1234'"] == (0, 0)
        if "i" in filtered:
            assert sum(read[f"i = {number}"] == (0, 0) for number in absent) > len(absent) * 0.8, vectorized


def spark_reads(frame, wheres):
    """For each condition: rows that satisfy it, and rows that Spark's scan handed on to look at for it."""
    from pyspark.sql import functions as F

    every = functools.reduce(DataFrame.unionAll, (frame.where(where).select(F.lit(number)) for number, where in enumerate(wheres)))
    hits = collections.Counter(number for number, in every.collect())
    scans = every._jdf.queryExecution().executedPlan().collectLeaves()
    assert scans.size() == len(wheres)
    handed_on = [scans.apply(number).metrics().apply("numOutputRows").value() for number in range(len(wheres))]
    return {where: (hits[number], handed_on[number]) for number, where in enumerate(wheres)}


def having_filters(files):
    """Root columns that have a bloom filter in one of the files."""
    query = "SELECT DISTINCT split_part(path_in_schema, ',', 1) FROM parquet_metadata(?) WHERE bloom_filter_offset IS NOT NULL"
    return {name for name, in by_duckdb(query, files).fetchall()}
