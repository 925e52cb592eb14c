"""Clustered tables and CREATE TABLE: what we commit is what Spark commits, and each goes on with the other's work."""

import json
import re

import pytest

from lakesmith_binary import Failed

COLUMNS = (
    "(a BIGINT NOT NULL COMMENT 'the key', b STRING, c INT, d DATE, e DOUBLE, bo BOOLEAN, bi BINARY, ar ARRAY<INT>, "
    "ma MAP<STRING, ARRAY<DECIMAL(10,2)>>, s STRUCT<x: INT COMMENT 'inner', y: STRING, bo: BOOLEAN>)"
)


def full(*cases):
    """Cases that only the full run takes."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full) for case in cases]


def settled_names(text):
    """The text with identifiers that are made up replaced by their number."""
    seen = {}
    return re.sub(
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        lambda found: f"<{seen.setdefault(found[0], len(seen))}>",
        text,
    )


def configuration(table, version):
    """A commit without what differs from run to run."""
    found = []
    for kind, body in table.commit(version):
        body = dict(body)
        for key in ("id", "createdTime", "timestamp", "inCommitTimestamp", "txnId", "engineInfo"):
            body.pop(key, None)
        if kind == "protocol":
            for key in ("readerFeatures", "writerFeatures"):
                body[key] = sorted(body.get(key) or [])
        if kind == "metaData":
            # The order of a field's metadata says nothing.
            body["schemaString"] = json.loads(body["schemaString"])
        if kind == "commitInfo":
            parameters = body["operationParameters"]
            if "properties" in parameters:
                parameters = {**parameters, "properties": json.loads(parameters["properties"])}
            body["operationParameters"] = parameters
        found.append((kind, body))
    return settled_names(json.dumps(found, sort_keys=True, indent=1))


def both(ours, theirs, lakesmith, statement):
    """Runs a statement on two tables, by us and by Spark."""
    lakesmith.sql(statement.replace("{t}", ours.name))
    theirs.sql(statement)


def refusal(run):
    """Class and message of Spark's error."""
    with pytest.raises(Exception) as raised:
        run()
    text = re.sub(r" SQLSTATE: \w+.*$", "", str(raised.value), flags=re.S).strip()
    found = re.match(r"\[([A-Z][A-Z0-9_.]+)\] ?(.*)$", text, flags=re.S)
    return (found[1], found[2].strip()) if found else (None, text)


def refused_alike(ours, theirs, lakesmith, statement, same_text=True):
    version = ours.version()
    with pytest.raises(Failed) as failed:
        lakesmith.sql(statement.replace("{t}", ours.name))
    error_class, message = refusal(lambda: theirs.sql(statement))
    assert failed.value.error_class == error_class, (failed.value, message)
    if same_text:
        assert failed.value.error["message"].strip() == message
    assert failed.value.code == 2 and ours.version() == version


@pytest.mark.parametrize("clauses", [
    "USING DELTA CLUSTER BY (s.x, d, b) COMMENT 'it''s' TBLPROPERTIES ('k' = 'v', delta.checkpointInterval = 5)",
    "USING DELTA CLUSTER BY (a) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "USING DELTA CLUSTER BY (s.x) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    *full(
        "USING DELTA",
        "USING DELTA CLUSTER BY (a)",
        "USING DELTA PARTITIONED BY (D, c) TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "USING DELTA TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "USING DELTA TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "USING DELTA TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "USING DELTA CLUSTER BY (s.x, b) TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
        "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableTypeWidening' = 'true')",
        "USING DELTA TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.feature.vacuumProtocolCheck' = 'supported')",
    ),
])
def test_a_new_table_is_sparks(new_table, lakesmith, clauses):
    ours, theirs = new_table("ours"), new_table("theirs")
    both(ours, theirs, lakesmith, f"CREATE TABLE {{t}} {COLUMNS} {clauses}")
    assert configuration(ours, 0) == configuration(theirs, 0)
    for table in (ours, theirs):
        table.sql("INSERT INTO {t} (a, b, c, d, s) VALUES (1, 'x', 2, DATE'2026-01-01', named_struct('x', 1, 'y', 'z', 'bo', true))")
    assert ours.fingerprint() == theirs.fingerprint()
    mine, spark_detail = lakesmith.detail(ours), theirs.detail()
    for name in ("partitionColumns", "clusteringColumns", "tableFeatures", "minReaderVersion", "minWriterVersion", "description"):
        assert mine[name] == spark_detail[name], name


@pytest.mark.parametrize("columns", [
    "(n TIMESTAMP_NTZ, t TIMESTAMP, f FLOAT, ti TINYINT, sm SMALLINT, de DECIMAL)",
    *full("(v VARCHAR(5), c CHAR(3))", "(v VARIANT, l ARRAY<STRUCT<z: TIMESTAMP_NTZ>>)", "(`ü` INT, _x INT)"),
])
def test_types_are_sparks(new_table, lakesmith, columns):
    ours, theirs = new_table("ours"), new_table("theirs")
    both(ours, theirs, lakesmith, f"CREATE TABLE {{t}} {columns} USING DELTA")
    assert configuration(ours, 0) == configuration(theirs, 0)
    assert ours.frame().schema == theirs.frame().schema


def test_a_table_that_exists_stays(new_table, lakesmith):
    ours, theirs = new_table("ours"), new_table("theirs")
    both(ours, theirs, lakesmith, "CREATE TABLE {t} (a INT) USING DELTA")
    both(ours, theirs, lakesmith, "CREATE TABLE IF NOT EXISTS {t} (b STRING) USING DELTA CLUSTER BY (b)")
    assert ours.version() == theirs.version() == 0
    refused_alike(ours, theirs, lakesmith, "CREATE TABLE {t} (a INT) USING DELTA", same_text=False)


@pytest.mark.parametrize("definition, same_text", [
    ("(a INT, b INT, c INT, d INT, e INT) USING DELTA CLUSTER BY (a, b, c, d, e)", True),
    ("(a INT, s STRUCT<x: INT, y: INT>) USING DELTA CLUSTER BY (a, s.y) TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 's.x')", True),
    ("(a INT, b INT) USING DELTA PARTITIONED BY (a) CLUSTER BY (b)", False),
    *full(
        ("(a INT, b INT) USING DELTA CLUSTER BY (a, nope)", True),
        ("(a INT, s STRUCT<x: INT>) USING DELTA CLUSTER BY (s.nope)", True),
        ("(a INT, bo BOOLEAN) USING DELTA CLUSTER BY (bo)", True),
        ("(a INT, ar ARRAY<INT>) USING DELTA CLUSTER BY (ar, a)", True),
        ("(a INT, bi BINARY) USING DELTA CLUSTER BY (bi)", True),
        ("(a INT, s STRUCT<x: INT>) USING DELTA CLUSTER BY (s)", True),
        ("(a INT, b INT) USING DELTA CLUSTER BY (b) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')", True),
        ("(a INT) USING DELTA CLUSTER BY AUTO", False),
        ("(a INT) USING DELTA TBLPROPERTIES ('delta.nope' = 'x')", True),
        ("(a INT) USING DELTA TBLPROPERTIES ('delta.feature.clustering' = 'supported')", False),
        ("(a INT, A INT) USING DELTA", False),
        ("(`a b` INT) USING DELTA", False),
        ("(a INT, b INT) USING DELTA PARTITIONED BY (a, b)", False),
    ),
])
def test_what_cannot_be_created(new_table, lakesmith, definition, same_text):
    ours, theirs = new_table("ours"), new_table("theirs")
    statement = f"CREATE TABLE {{t}} {definition}"
    with pytest.raises(Failed) as failed:
        lakesmith.sql(statement.replace("{t}", ours.name))
    error_class, message = refusal(lambda: theirs.sql(statement))
    if error_class:
        assert failed.value.error_class == error_class, (failed.value, message)
    else:
        # Delta's own parser gives no class.
        assert failed.value.error_class == "PARSE_SYNTAX_ERROR" and failed.value.error["message"] in message
    if same_text:
        assert failed.value.error["message"].strip() == message
    assert failed.value.code == 2


def test_keys_change_as_spark_changes_them(new_table, lakesmith):
    ours, theirs = new_table("ours"), new_table("theirs")
    both(ours, theirs, lakesmith, f"CREATE TABLE {{t}} {COLUMNS} USING DELTA TBLPROPERTIES ('k' = 'v')")
    for keys in ("NONE", "(a, s.x)", "(s.x, a)", "(d)", "NONE", "NONE", "(b, d)"):
        both(ours, theirs, lakesmith, f"ALTER TABLE {{t}} CLUSTER BY {keys}")
        assert ours.version() == theirs.version(), keys
        assert configuration(ours, ours.version()) == configuration(theirs, theirs.version()), keys
        assert lakesmith.detail(ours)["clusteringColumns"] == theirs.detail().clusteringColumns, keys
    assert ours.detail().clusteringColumns == ["b", "d"]


def test_keys_of_a_table_with_mapped_columns_and_its_own_clock(new_table, lakesmith):
    ours, theirs = new_table("ours"), new_table("theirs")
    properties = "'delta.columnMapping.mode' = 'name', 'delta.enableInCommitTimestamps' = 'true', 'delta.enableRowTracking' = 'true'"
    both(ours, theirs, lakesmith, f"CREATE TABLE {{t}} {COLUMNS} USING DELTA TBLPROPERTIES ({properties})")
    for table in (ours, theirs):
        table.sql("ALTER TABLE {t} RENAME COLUMN b TO `z z`")
    both(ours, theirs, lakesmith, "ALTER TABLE {t} CLUSTER BY (`z z`, s.x)")
    ours_again, theirs_again = configuration(ours, ours.version()), configuration(theirs, theirs.version())
    # Physical names are made up: their places are compared.
    assert ours_again == theirs_again
    assert ours.detail().clusteringColumns == theirs.detail().clusteringColumns == lakesmith.detail(ours)["clusteringColumns"]
    ours.sql("INSERT INTO {t} (a, `z z`) VALUES (1, 'x')")
    ours.sql("OPTIMIZE {t}")


@pytest.mark.parametrize("keys", [
    "(nope)", "(bo)", "(a, s.y, c)", *full("(a, b, c, d, e)", "(a, A)", "(ar)", "(s)", "(s.bo, a)", "(s.nope)", "(a.b)", "(e)"),
])
def test_what_cannot_be_a_key(new_table, lakesmith, keys):
    ours, theirs = new_table("ours"), new_table("theirs")
    definition = f"CREATE TABLE {{t}} {COLUMNS} USING DELTA TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '2')"
    both(ours, theirs, lakesmith, definition)
    refused_alike(ours, theirs, lakesmith, f"ALTER TABLE {{t}} CLUSTER BY {keys}")


@pytest.mark.parametrize("keys", ["(a)", *full("NONE", "AUTO", "()", "a")])
def test_keys_of_a_partitioned_table(new_table, lakesmith, keys):
    ours, theirs = new_table("ours"), new_table("theirs")
    both(ours, theirs, lakesmith, f"CREATE TABLE {{t}} {COLUMNS} USING DELTA PARTITIONED BY (c)")
    refused_alike(ours, theirs, lakesmith, f"ALTER TABLE {{t}} CLUSTER BY {keys}", same_text=keys in ("(a)", "NONE"))
