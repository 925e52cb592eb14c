"""TPC-H: what we answer on Delta tables is what DuckDB answers on the Parquet files that they were made of."""

import pytest

import tpch_tables


@pytest.fixture(scope="module", params=[0.01, pytest.param(1, marks=pytest.mark.full)], ids=lambda scale: f"scale {scale:g}")
def tables(request, lakesmith, tmp_path_factory):
    """Runs a query on both sides: our rows, and DuckDB's."""
    parquet, warehouse = str(tmp_path_factory.mktemp("parquet")), str(tmp_path_factory.mktemp("warehouse"))
    tpch_tables.generate(parquet, request.param)
    lakesmith.sql("; ".join(tpch_tables.create(table, parquet) for table in tpch_tables.TABLES), "--warehouse", warehouse)
    connection = tpch_tables.duckdb_over(parquet)

    def both(text):
        rows = [list(row.values()) for row in lakesmith.sql(text, "--warehouse", warehouse)]
        return rows, connection.execute(text).fetchall()

    return both


@pytest.mark.parametrize("table", tpch_tables.TABLES)
def test_tables_hold_what_they_were_made_of(tables, table):
    counted, known = tables(f"SELECT count(*) FROM {table}")
    assert counted == [list(row) for row in known]
    described, columns = tables(f"DESCRIBE {table}")
    kinds = {"BIGINT": "bigint", "INTEGER": "int", "VARCHAR": "string", "DATE": "date", "DECIMAL(15,2)": "decimal(15,2)"}
    assert [row[:2] for row in described] == [[name, kinds[kind]] for name, kind, *_ in columns]


@pytest.mark.parametrize("name", tpch_tables.QUERIES)
def test_queries_give_the_same_rows(tables, name):
    ours, theirs = tables(tpch_tables.query(name))
    assert theirs
    assert not tpch_tables.differences(ours, theirs)
