"""INSERT and DELETE: rows are there as the statements say, and Spark goes on with the table."""

import json
import os

import pytest

from answers import same_answers
from conftest import FIXTURES
from judgement import deltalake_reads
from lakesmith_binary import Failed

REFUSED = {"unknown_reader_feature", "unknown_writer_feature"}
NAMES = sorted(name for name in os.listdir(FIXTURES) if os.path.isdir(os.path.join(FIXTURES, name)) and name not in REFUSED)
CORE = {"row_tracking", "type_widening"}


def core(names, of):
    """Cases of which the quick run takes some."""
    return [name if name in of else pytest.param(name, marks=pytest.mark.full) for name in names]


def run(lakesmith, table, *statements):
    """Runs statements in which {t} stands for the table."""
    return lakesmith.sql("; ".join(statements).replace("{t}", table.name))


class Rows:
    """What rows a table must hold, as texts whose first value is the id."""

    def __init__(self, texts):
        self.texts = sorted(texts)

    def __eq__(self, others):
        return self.texts == others

    def ids(self):
        return [json.loads(text)[0] for text in self.texts]

    def where(self, condition):
        return Rows(text for text, number in zip(self.texts, self.ids()) if condition(number))

    def plus(self, others):
        return Rows(self.texts + others.texts)

    def renumbered(self, change):
        return Rows(json.dumps([change(row[0]), *row[1:]], sort_keys=True) for row in map(json.loads, self.texts))


def tracked(table):
    """Ids of rows by Spark, with the row's own id."""
    return {(row.row_id, row.id) for row in table.sql("SELECT _metadata.row_id, id FROM {t}")}


def foreign(table):
    """Rows that deltalake reads, or None where it does not support the table."""
    try:
        return deltalake_reads(table)
    except Exception:  # every refusal of a foreign library means the same here
        return None


@pytest.mark.parametrize("name", core(NAMES, CORE))
def test_spark_goes_on_where_we_changed_rows(golden, lakesmith, name):
    table = golden(name)
    if name == "cdf":
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    readable, has_ids = foreign(table) is not None, name == "row_tracking"
    before = tracked(table) if has_ids else set()
    rows = Rows(same_answers(table, lakesmith))
    run(lakesmith, table, "INSERT INTO {t} SELECT * FROM {t}")
    rows = rows.plus(rows)
    if has_ids:
        after = tracked(table)
        assert len({number for number, _ in after}) == len(after) == 2 * len(before) and before <= after
        before = after
    if name == "append_only":
        with pytest.raises(Failed) as failed:
            run(lakesmith, table, "DELETE FROM {t} WHERE id % 3 = 1")
        assert failed.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
        assert rows == same_answers(table, lakesmith)
        return
    run(lakesmith, table, "DELETE FROM {t} WHERE id % 3 = 1", "DELETE FROM {t} WHERE id < 7")
    rows = rows.where(lambda n: n % 3 != 1 and n >= 7)
    assert rows == same_answers(table, lakesmith)
    assert not has_ids or tracked(table) == {(row, number) for row, number in before if number % 3 != 1 and number >= 7}
    assert foreign(table) == (len(rows.texts) if readable else None)
    table.sql("UPDATE {t} SET id = id + 1000000 WHERE id % 5 = 0")
    table.sql("MERGE INTO {t} t USING (SELECT DISTINCT id FROM {t} WHERE id % 7 = 2) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    table.sql("OPTIMIZE {t}")
    table.sql("DELETE FROM {t} WHERE id % 11 = 3")
    rows = rows.renumbered(lambda n: n + 1000000 if n % 5 == 0 else n).where(lambda n: n % 7 != 2 and n % 11 != 3)
    assert table.agrees_with_checksum()
    table.checkpoint()
    table.forget_before_checkpoint()
    run(lakesmith, table, "DELETE FROM {t} WHERE id % 13 = 4", "INSERT INTO {t} SELECT * FROM {t} WHERE id % 2 = 0")
    rows = rows.where(lambda n: n % 13 != 4)
    rows = rows.plus(rows.where(lambda n: n % 2 == 0))
    assert table.agrees_with_checksum()
    assert rows == same_answers(table, lakesmith)
