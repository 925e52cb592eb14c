"""The tables of TPC-H: generated as Parquet, made into Delta tables by us, and the specification's queries over either."""

import glob
import os
import subprocess
import sys
from decimal import Decimal

TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tpch")
QUERIES = sorted(os.path.basename(path).removesuffix(".sql") for path in glob.glob(os.path.join(FOLDER, "q*.sql")))
# Of the larger of two numbers.
DIFFERENCE = 1e-6


def generate(folder, scale):
    """Writes one Parquet file a table."""
    os.makedirs(folder, exist_ok=True)
    generator = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    subprocess.run([generator, "parquet", "-s", f"{scale:g}", "-o", folder, "--quiet"], check=True)


def create(table, parquet):
    """The statement that makes the Delta table of this name of the generated one."""
    return f"CREATE TABLE {table} AS SELECT * FROM parquet.`{parquet}/{table}.parquet`"


def query(name):
    """The text of a query: the specification's, with its validation parameters and those of scale 1."""
    with open(os.path.join(FOLDER, f"{name}.sql"), encoding="utf-8") as file:
        return file.read()


def duckdb_over(parquet):
    """A connection that knows the generated tables."""
    import duckdb

    connection = duckdb.connect()
    for table in TABLES:
        connection.execute(f"CREATE VIEW {table} AS FROM '{parquet}/{table}.parquet'")
    return connection


def differences(ours, theirs):
    """Where our rows, as JSON has them, are others than DuckDB's; rows stand in the order that the query asks for."""
    found = [] if len(ours) == len(theirs) else [f"{len(ours)} rows instead of {len(theirs)}"]
    for number, (our, their) in enumerate(zip(ours, theirs)):
        if len(our) != len(their) or not all(map(same, our, their)):
            found.append(f"row {number}: {our} instead of {their}")
    return found


def same(ours, theirs):
    if theirs is None or ours is None:
        return ours is theirs
    if not isinstance(theirs, (int, float, Decimal)):
        return ours == str(theirs)
    near = DIFFERENCE * max(abs(float(ours)), abs(float(theirs)))
    if isinstance(ours, str) and isinstance(theirs, float):
        # Means and quotients of decimals are decimals, as in Spark, and DOUBLE in DuckDB: half of the last digit is rounding.
        near += float(Decimal(1).scaleb(Decimal(ours).as_tuple().exponent)) / 2
    return abs(float(ours) - float(theirs)) <= near
