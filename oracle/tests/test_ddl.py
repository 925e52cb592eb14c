"""DDL: the same statements by us and by Spark make the same table, which Spark reads and goes on writing."""

import json
import re
import uuid

import pytest

from judgement import compacted
from lakesmith_binary import Failed

COLUMNS = "id BIGINT, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<q: INT>>, m MAP<STRING, STRUCT<v: INT>>, p STRING, c INT"
ROW = [
    "id",
    "named_struct('x', cast(id AS INT), 'y', 'v') AS s",
    "array(named_struct('q', cast(id AS INT))) AS l",
    "map('k', named_struct('v', 1)) AS m",
    "concat('p', id % 2) AS p",
    "cast(id AS INT) AS c",
]


def full(*cases):
    """Cases that only the full run takes."""
    return [pytest.param(case, marks=pytest.mark.full) for case in cases]


@pytest.fixture
def pair(spark, new_table):
    """pair(properties): two tables alike, one for us and one for Spark, under paths that no other test has."""

    def make(properties="'a' = 'b'", layout="PARTITIONED BY (p)", rows=30):
        table = new_table(f"t{uuid.uuid4().hex}")
        table.sql(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta {layout} TBLPROPERTIES ({properties})")
        if rows:
            table.append(spark.range(rows).selectExpr(*ROW), files=2)
        return table, table.copy(f"{table.path}-spark")

    return make


def both(pair, lakesmith, text, name=None):
    """Runs a statement on both tables and compares what it did. `name`: what Spark calls its table, if not by the path."""
    ours, theirs = pair
    before = (ours.version(), theirs.version())
    theirs.spark.sql(text.replace("{t}", name or theirs.name))
    lakesmith.run("sql", text.replace("{t}", ours.name))
    made = [table.version() - version for table, version in zip((ours, theirs), before)]
    assert made[0] == made[1], text
    if made[0]:
        same_commit(ours, theirs, text)


def same_commit(ours, theirs, text):
    mine, spark = ours.commit_info(), theirs.commit_info()
    for key in ("operation", "isolationLevel", "isBlindAppend", "operationMetrics"):
        assert mine.get(key) == spark.get(key), (text, key)
    assert plain(mine["operationParameters"]) == plain(spark["operationParameters"]), text
    assert actions(ours) == actions(theirs), text


def actions(table):
    """What a commit says beside the history, without what is random or a matter of order."""
    found = {}
    for kind, body in table.commit():
        if kind == "metaData":
            body = {key: value for key, value in body.items() if key not in ("id", "createdTime")}
            body["schemaString"] = json.loads(body["schemaString"])
        elif kind == "protocol":
            body = {key: sorted(value) if isinstance(value, list) else value for key, value in body.items()}
        elif kind == "domainMetadata":
            body = {**body, "configuration": json.loads(body["configuration"])}
        elif kind == "remove":
            body = {key: body.get(key) for key in ("path", "dataChange", "partitionValues", "size")}
        else:
            continue
        found.setdefault(kind, []).append(plain(body))
    for bodies in found.values():
        bodies.sort(key=lambda body: json.dumps(body, sort_keys=True))
    return found


def plain(value):
    """JSON in texts is read, random names are all alike."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        if value[:1] in "[{" and value:
            try:
                return plain(json.loads(value))
            except ValueError:
                pass
        return re.sub(r"col-[0-9a-f-]{36}", "col-?", value)
    return value


def judged(pair, lakesmith, *writes):
    """Spark sees the same in both, and goes on with ours."""
    ours, theirs = pair
    assert ours.frame().schema == theirs.frame().schema
    rows = [sorted(map(str, table.frame().collect())) for table in pair]
    assert rows[0] == rows[1]
    described = [table.sql("DESCRIBE {t}") for table in pair]
    assert described[0] == described[1]
    mine = [tuple(row.values()) for row in lakesmith.sql(f"DESCRIBE {ours.name}")]
    assert mine == [tuple(row) for row in described[0]]
    for text in writes:
        for table in pair:
            table.sql(text)
    compacted(ours, lakesmith)
    rows = [sorted(map(str, table.frame().collect())) for table in pair]
    assert rows[0] == rows[1]


def test_columns_are_added_moved_and_commented(pair, lakesmith):
    tables = pair()
    for text in (
        "ALTER TABLE {t} ADD COLUMN n1 INT",
        "ALTER TABLE {t} ADD COLUMNS (n2 STRING COMMENT 'two' FIRST, n3 DOUBLE AFTER id)",
        "ALTER TABLE {t} ADD COLUMN s.z BIGINT AFTER x",
        "ALTER TABLE {t} ADD COLUMN l.element.r STRING",
        "ALTER TABLE {t} ADD COLUMN m.value.w STRING FIRST",
        "ALTER TABLE {t} ADD COLUMN vc VARCHAR(5)",
        "ALTER TABLE {t} ALTER COLUMN c COMMENT 'it''s'",
        "ALTER TABLE {t} ALTER COLUMN c FIRST",
        "ALTER TABLE {t} ALTER COLUMN c AFTER id",
        "ALTER TABLE {t} ALTER COLUMN s.x AFTER y",
        "ALTER TABLE {t} ALTER COLUMN p FIRST",
        "ALTER TABLE {t} CHANGE COLUMN c c INT COMMENT 'again'",
        "ALTER TABLE {t} ALTER COLUMN m.value.v COMMENT 'deep'",
        "ALTER TABLE {t} ALTER COLUMN c DROP NOT NULL",
        "ALTER TABLE {t} ALTER COLUMN c TYPE INT",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS nope",
        "COMMENT ON TABLE {t} IS 'the table'",
    ):
        both(tables, lakesmith, text)
    judged(
        tables,
        lakesmith,
        "INSERT INTO {t} (id, p, n1, vc) VALUES (100, 'p0', 7, 'abc')",
        "UPDATE {t} SET n2 = 'x' WHERE id < 5",
        "DELETE FROM {t} WHERE id = 6",
    )


def test_columns_are_renamed_and_dropped(pair, lakesmith):
    tables = pair("'delta.columnMapping.mode' = 'name', 'delta.dataSkippingStatsColumns' = 'id,s.x,c'")
    for text in (
        "ALTER TABLE {t} RENAME COLUMN c TO `c c`",
        "ALTER TABLE {t} RENAME COLUMN s.x TO xx",
        "ALTER TABLE {t} RENAME COLUMN p TO pp",
        "ALTER TABLE {t} DROP COLUMNS (`c c`, s.y)",
        "ALTER TABLE {t} ADD COLUMN c STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>> FIRST",
        "ALTER TABLE {t} ALTER COLUMN id COMMENT 'key'",
    ):
        both(tables, lakesmith, text)
    judged(
        tables,
        lakesmith,
        "INSERT INTO {t} (id, pp, c) VALUES (100, 'p0', named_struct('a', 1, 'b', array(named_struct('c', 2))))",
        "UPDATE {t} SET id = id + 1000 WHERE id < 5",
    )


def test_types_grow(pair, lakesmith):
    tables = pair("'delta.enableTypeWidening' = 'true'")
    for text in (
        "ALTER TABLE {t} ALTER COLUMN c TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN s.x TYPE DECIMAL(12,2)",
        "ALTER TABLE {t} ALTER COLUMN l.element.q TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN m.value.v TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN id TYPE DECIMAL(20,0)",
        "ALTER TABLE {t} ALTER COLUMN s.x TYPE DECIMAL(14,3)",
    ):
        both(tables, lakesmith, text)
    judged(
        tables,
        lakesmith,
        "INSERT INTO {t} (id, p, c) VALUES (12345678901234567890, 'p0', 5000000000)",
        "UPDATE {t} SET c = c + 1 WHERE id < 5",
    )


def test_tables_begin_with_defaults(new_table, lakesmith):
    tables = [new_table(f"t{uuid.uuid4().hex}") for _ in range(2)]
    columns = "(a INT DEFAULT 1 + 4 COMMENT 'five', b STRING NOT NULL DEFAULT 'it''s', c TIMESTAMP DEFAULT current_timestamp())"
    text = f"CREATE TABLE {{t}} {columns} USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    tables[1].sql(text)
    lakesmith.run("sql", text.replace("{t}", tables[0].name))
    same_commit(*tables, text)
    for table in tables:
        table.sql("INSERT INTO {t} (c) VALUES (TIMESTAMP'2020-01-01')")
    assert tables[0].frame().collect() == tables[1].frame().collect()


def test_defaults_and_constraints(pair, lakesmith):
    tables = pair("'delta.feature.allowColumnDefaults' = 'supported'", rows=0)
    for text in (
        "ALTER TABLE {t} ALTER COLUMN c SET DEFAULT 1 + 2",
        "ALTER TABLE {t} ALTER COLUMN p SET DEFAULT 'it''s'",
        "ALTER TABLE {t} ALTER COLUMN c DROP DEFAULT",
        "ALTER TABLE {t} ALTER COLUMN c SET DEFAULT NULL",
        "ALTER TABLE {t} ADD CONSTRAINT Pos CHECK (id>0  and\n c IS NULL)",
        "ALTER TABLE {t} ADD CONSTRAINT q CHECK (p <> 'bad')",
        "ALTER TABLE {t} DROP CONSTRAINT q",
        "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS q",
    ):
        both(tables, lakesmith, text)
    ours = tables[0]
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        ours.sql("INSERT INTO {t} (id) VALUES (-1)")
    judged(tables, lakesmith, "INSERT INTO {t} (id) VALUES (1)", "INSERT INTO {t} (id) VALUES (2)")
    assert ours.frame().where("p = \"it's\"").count() == 2


@pytest.mark.parametrize(
    "layout, text",
    [
        ("PARTITIONED BY (p)", "CREATE OR REPLACE TABLE {t} (z INT, p STRING) USING delta PARTITIONED BY (p) COMMENT 'new'"),
        pytest.param("CLUSTER BY (c)", "REPLACE TABLE {t} (z INT, p STRING) USING delta", marks=pytest.mark.full),
        pytest.param("", "CREATE OR REPLACE TABLE {t} (z INT, p STRING) USING delta CLUSTER BY (z)", marks=pytest.mark.full),
    ],
)
def test_tables_are_replaced(spark, pair, lakesmith, layout, text):
    tables = pair(layout=layout)
    # Spark's CREATE OR REPLACE does not replace what is named by its path.
    name = f"r{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{tables[1].path}'")
    both(tables, lakesmith, text, name)
    spark.sql(f"DROP TABLE {name}")
    assert tables[0].frame(1).count() == 30
    writes = [f"INSERT INTO {{t}} VALUES ({n}, 'x')" for n in range(3)]
    judged(tables, lakesmith, *writes)


ERRORS = [
    "ALTER TABLE {t} ADD COLUMN ID INT",
    "ALTER TABLE {t} ADD COLUMN nope.x INT",
    "ALTER TABLE {t} RENAME COLUMN c TO d",
    "ALTER TABLE {t} DROP COLUMN c",
    "ALTER TABLE {t} ALTER COLUMN c TYPE BIGINT",
    "ALTER TABLE {t} ALTER COLUMN c SET DEFAULT 5",
    "ALTER TABLE {t} DROP CONSTRAINT nope",
]
MORE_ERRORS = [
    "ALTER TABLE {t} ADD COLUMN n INT AFTER nope",
    "ALTER TABLE {t} ADD COLUMN id.x INT",
    "ALTER TABLE {t} ADD COLUMN n INT NOT NULL",
    "ALTER TABLE {t} ADD COLUMN n INT DEFAULT 5",
    "ALTER TABLE {t} ADD COLUMN `b d` INT",
    "ALTER TABLE {t} ADD COLUMNS (d1 INT, D1 INT)",
    "ALTER TABLE {t} ADD COLUMN s.x INT",
    "ALTER TABLE {t} DROP COLUMN nope",
    "ALTER TABLE {t} RENAME COLUMN c TO id",
    "ALTER TABLE {t} ALTER COLUMN c AFTER nope",
    "ALTER TABLE {t} ALTER COLUMN s.x AFTER id",
    "ALTER TABLE {t} ALTER COLUMN c TYPE STRING",
    "ALTER TABLE {t} ALTER COLUMN c TYPE SMALLINT",
    "ALTER TABLE {t} ALTER COLUMN c SET NOT NULL",
    "ALTER TABLE {t} ALTER COLUMN nope COMMENT 'x'",
    "ALTER TABLE {t} ALTER COLUMN l.element COMMENT 'x'",
    "ALTER TABLE {t} ALTER COLUMN s TYPE STRUCT<x: INT>",
    "ALTER TABLE {t} ADD CONSTRAINT k CHECK (nope > 0)",
    "ALTER TABLE {t} ADD CONSTRAINT k CHECK (id)",
    "ALTER TABLE {t} ADD CONSTRAINT k PRIMARY KEY (id)",
    "DESCRIBE {t} nope",
    "SHOW TABLES IN nope",
    "USE nope",
    "DROP DATABASE nope",
    "DROP DATABASE default",
    "CREATE DATABASE default",
    "CREATE DATABASE a.b",
    "DROP TABLE nope",
    "CREATE TABLE nope.t (a INT) USING delta",
    "REPLACE TABLE nope (a INT) USING delta",
    "DESCRIBE nope",
    "OPTIMIZE nope",
    "VACUUM nope.t",
]


@pytest.mark.parametrize("text", [*ERRORS, *full(*MORE_ERRORS)])
def test_errors_have_sparks_classes(pair, lakesmith, tmp_path, text):
    ours, theirs = pair(rows=0)
    before = ours.version()
    with pytest.raises(Exception) as spark_error:
        theirs.sql(text)
    with pytest.raises(Failed) as failed:
        lakesmith.run("sql", text.replace("{t}", ours.name), "--json", "--warehouse", tmp_path / "warehouse")
    assert failed.value.error_class == spark_error.value.getCondition()
    assert ours.version() == before


def test_a_warehouse_is_shared_with_spark(spark, lakesmith):
    warehouse = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    database = f"d{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {database} COMMENT 'shared'")
    spark.sql(f"CREATE TABLE {database}.Theirs (id BIGINT NOT NULL COMMENT 'key', d DATE) USING delta PARTITIONED BY (d) COMMENT 'c'")
    spark.sql(f"INSERT INTO {database}.theirs VALUES (1, DATE'2020-01-01')")

    def ours(text):
        return [tuple(row.values()) for row in lakesmith.sql(text, "--warehouse", warehouse)]

    for text in (
        "SHOW TABLES IN {d}",
        "SHOW COLUMNS IN {d}.theirs",
        "DESCRIBE TABLE EXTENDED {d}.theirs",
        "DESCRIBE {d}.theirs id",
        "SHOW TBLPROPERTIES {d}.theirs",
    ):
        text = text.replace("{d}", database)
        assert ours(text) == [tuple(row) for row in spark.sql(text).collect()], text
    assert (database,) in ours("SHOW DATABASES")
    ours(f"ALTER TABLE {database}.theirs ADD COLUMN n INT; OPTIMIZE {database}.theirs")
    spark.sql(f"REFRESH TABLE {database}.theirs")
    assert spark.sql(f"SELECT * FROM {database}.theirs").collect()[0].asDict()["n"] is None
    ours(f"CREATE TABLE {database}.mine (a INT, b STRING) USING delta CLUSTER BY (a)")
    path = f"{warehouse}/{database}.db/mine"
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'x')")
    spark.sql(f"CREATE TABLE {database}.mine USING delta LOCATION '{path}'")
    assert spark.sql(f"SELECT a, b FROM {database}.mine").collect() == [(1, "x")]
    text = f"DESCRIBE TABLE {database}.mine"
    assert ours(text) == [tuple(row) for row in spark.sql(text).collect()]
    spark.sql(f"DROP DATABASE {database} CASCADE")
    assert (database,) not in ours("SHOW DATABASES")
