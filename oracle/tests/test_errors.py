"""What Spark refuses, we refuse by the same name, with the documented exit code, and change nothing."""

import re

import pytest

from lakesmith_binary import Failed


def spark_class(run):
    with pytest.raises(Exception) as raised:
        run()
    return re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(raised.value))[1]


@pytest.fixture
def plain(golden):
    return golden("append_only")


def test_filter_on_a_data_column(plain, lakesmith):
    with pytest.raises(Failed) as failed:
        lakesmith.optimize(plain, "--where", "id >= 3")
    theirs = spark_class(lambda: plain.sql("OPTIMIZE {t} WHERE id >= 3"))
    assert (failed.value.code, failed.value.error_class) == (2, theirs) == (2, "DELTA_NON_PARTITION_COLUMN_REFERENCE")


def test_filter_on_a_data_column_in_sql(plain, lakesmith):
    with pytest.raises(Failed) as failed:
        lakesmith.sql(f"OPTIMIZE {plain.name} WHERE id >= 3")
    assert (failed.value.code, failed.value.error_class) == (2, "DELTA_NON_PARTITION_COLUMN_REFERENCE")


def test_not_a_delta_table(new_table, lakesmith, tmp_path):
    table = new_table("nothing")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "a.txt").write_text("a")
    with pytest.raises(Failed) as failed:
        lakesmith.optimize(table)
    theirs = spark_class(lambda: table.sql("OPTIMIZE {t}"))
    assert (failed.value.code, failed.value.error_class) == (1, theirs) == (1, "DELTA_MISSING_DELTA_TABLE")
    assert [path.name for path in (tmp_path / "nothing").iterdir()] == ["a.txt"]


def test_version_not_found(plain, lakesmith):
    with pytest.raises(Failed) as failed:
        lakesmith.json("detail", plain, "--version", 99)
    theirs = spark_class(lambda: plain.frame(99).count())
    assert (failed.value.code, failed.value.error_class) == (1, theirs) == (1, "DELTA_VERSION_NOT_FOUND")


def test_unknown_property(plain, lakesmith):
    statement = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.nope' = '1')"
    version = plain.version()
    with pytest.raises(Failed) as failed:
        lakesmith.sql(statement.replace("{t}", plain.name))
    theirs = spark_class(lambda: plain.sql(statement))
    assert failed.value.error_class == theirs == "DELTA_UNKNOWN_CONFIGURATION"
    assert plain.version() == version


@pytest.mark.parametrize("statement", ["OPTIMISE {t}", "OPTIMIZE {t} WHERE", "OPTIMIZE {t} ZORDER BY ()"])
def test_syntax(plain, lakesmith, statement):
    with pytest.raises(Failed) as failed:
        lakesmith.sql(statement.replace("{t}", plain.name))
    theirs = spark_class(lambda: plain.sql(statement))
    assert (failed.value.code, failed.value.error_class) == (2, theirs) == (2, "PARSE_SYNTAX_ERROR")


def test_zorder_on_a_clustered_table(golden, lakesmith):
    table = golden("liquid_before")
    with pytest.raises(Failed) as failed:
        lakesmith.optimize(table, "--zorder-by", "k")
    theirs = spark_class(lambda: table.sql("OPTIMIZE {t} ZORDER BY (k)"))
    assert failed.value.error_class == theirs == "DELTA_CLUSTERING_WITH_ZORDER_BY"


def test_full_on_a_plain_table(plain, lakesmith):
    with pytest.raises(Failed) as failed:
        lakesmith.optimize(plain, "--full")
    theirs = spark_class(lambda: plain.sql("OPTIMIZE {t} FULL"))
    assert failed.value.error_class == theirs == "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"
