"""Logs and values that no writer means to write: we see what Spark sees, and never bring a row back."""

import json
import os
import time
import uuid

import pytest

from lakesmith_binary import Failed


@pytest.fixture
def fresh_table(new_table):
    """A handle on a table under a path that no other test has: Spark remembers what it has seen under a path."""
    return lambda: new_table(f"t{uuid.uuid4().hex}")


def hand_made(table, *actions):
    """Puts a commit of these actions in, as a careless writer would."""
    version = table.version() + 1
    with open(f"{table.path}/_delta_log/{version:020d}.json", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(action) + "\n" for action in actions)


def ids(table, version=None):
    return sorted(row.id for row in table.frame(version).select("id").collect())


def our_rows(table, lakesmith):
    return sum(file["numRecords"] for file in lakesmith.files(table))


def removed(path):
    return {"remove": {"path": path, "deletionTimestamp": int(time.time() * 1000), "dataChange": True}}


SPELLINGS = ["./{0}", ".//{0}", "x/../{0}", "x//..//{0}", "{0}"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_removed_under_another_spelling_stays_removed(spark, fresh_table, lakesmith, spelling):
    table = fresh_table()
    for k in range(4):
        table.append(spark.range(k * 10, k * 10 + 10))
    victim = next(body["path"] for kind, body in table.commit(2) if kind == "add")
    hand_made(table, removed(spelling.format(victim)))
    # A new name for each reader: Spark remembers the state of a table that it has seen.
    seen = table.copy(table.path + "-seen")
    expected = ids(seen)
    assert expected == [*range(20), *range(30, 40)]
    assert our_rows(table, lakesmith) == 30
    if spelling != "{0}":
        with pytest.raises(Failed) as failed:
            lakesmith.optimize(table)
        assert failed.value.error["context"]["version"] == "4" and victim in failed.value.error["message"]
        lakesmith.run("checkpoint", table)
        assert ids(table.copy(table.path + "-settled")) == expected
    assert lakesmith.optimize(table)["metrics"]["numFilesRemoved"] == 3
    assert ids(table.copy(table.path + "-after")) == expected


@pytest.mark.parametrize("spelling", ["./{0}", "x/../{0}", ".//{0}"])
def test_a_file_added_under_an_odd_spelling_is_taken_out_for_every_reader(spark, fresh_table, lakesmith, spelling):
    from deltalake import DeltaTable

    table = fresh_table()
    for k in range(3):
        table.append(spark.range(k * 10, k * 10 + 10))
    odd = fresh_table()
    os.makedirs(odd.path + "/_delta_log")
    actions = [(kind, body) for version in range(3) for kind, body in table.commit(version)]
    for _, body in (action for action in actions if action[0] == "add"):
        os.link(f"{table.path}/{body['path']}", f"{odd.path}/{body['path']}")
        body["path"] = spelling.format(body["path"])
    with open(f"{odd.path}/_delta_log/{0:020d}.json", "w", encoding="utf-8") as file:
        kept = [action for action in actions if action[0] != "commitInfo"]
        file.writelines(json.dumps({kind: body}) + "\n" for kind, body in kept)
    assert ids(odd.copy(odd.path + "-seen")) == list(range(30))
    report = lakesmith.optimize(odd)
    assert report["metrics"]["numFilesRemoved"] == 3
    assert ids(odd) == list(range(30))
    assert len(DeltaTable(odd.path).file_uris()) == 1


def test_strings_that_are_no_text_keep_their_bytes(spark, fresh_table, lakesmith):
    table = fresh_table()
    bad = "cast(unhex(concat(hex(id), 'FFC3', hex(id))) as string)"
    for k in range(3):
        table.append(
            spark.range(k * 100, k * 100 + 100).selectExpr(
                "id",
                f"CASE WHEN id % 3 = 0 THEN {bad} WHEN id % 3 = 1 THEN concat('ü', id) END AS s",
                f"array({bad}, 'x', null) AS l",
                f"map({bad}, {bad}) AS m",
                f"named_struct('v', {bad}) AS st",
            )
        )
    def seen():
        rows = table.frame().selectExpr(
            "id", "hex(cast(s as binary)) AS s", "transform(l, x -> hex(cast(x as binary))) AS l",
            "hex(cast(map_keys(m)[0] as binary)) AS k", "hex(cast(map_values(m)[0] as binary)) AS v",
            "hex(cast(st.v as binary)) AS st", "s IS NULL AS n",
        )
        return sorted(map(tuple, rows.collect()))

    def found():
        first = table.frame().selectExpr("id", "hex(cast(s as binary)) AS h").where("id = 33").first().h
        wanted = [f"s = cast(unhex('{first}') as string)", "s >= 'ü1' AND s < 'ü2'", "s < 'b'", "s > 'ü'", "s IS NULL"]
        return [table.frame().where(predicate).count() for predicate in wanted]

    before, counts = seen(), found()
    report = lakesmith.optimize(table, "--verify")
    assert (report["metrics"]["numFilesRemoved"], report["left_out"]) == (3, [])
    assert seen() == before
    assert not lakesmith.optimize(table)["committed"]
    assert found() == counts and sum(counts) > 0
    table.sql("DELETE FROM {t} WHERE id < 50")
    assert lakesmith.optimize(table)["committed"] in (True, False)
    assert table.frame().count() == 250


def broken_text(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("this is no Parquet file")


def broken_half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def broken_empty(path):
    os.truncate(path, 0)


@pytest.mark.parametrize("damage", [broken_text, broken_half, broken_empty, os.remove])
@pytest.mark.parametrize("which", ["newest", "all"])
def test_a_broken_checkpoint_beside_a_whole_log_is_read_around(spark, fresh_table, lakesmith, damage, which):
    table = fresh_table()
    table.sql("CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointInterval'='3')")
    for k in range(8):
        table.append(spark.range(k * 10, k * 10 + 10))
    log = table.path + "/_delta_log"
    checkpoints = sorted(name for name in os.listdir(log) if name.endswith(".checkpoint.parquet"))
    assert len(checkpoints) == 2
    for name in checkpoints[-1:] if which == "newest" else checkpoints:
        damage(f"{log}/{name}")
        side = f"{log}/.{name}.crc"
        if os.path.exists(side):
            os.remove(side)
    assert our_rows(table, lakesmith) == 80
    assert lakesmith.optimize(table)["metrics"]["numFilesRemoved"] == 8
    after = table.copy(table.path + "-after")
    lakesmith.run("checkpoint", after)
    assert ids(after) == list(range(80))
    try:
        theirs = ids(table.copy(table.path + "-theirs"))
    except Exception:
        # Spark itself gives up on some of these; then there is nothing to compare with.
        return
    assert theirs == list(range(80))
