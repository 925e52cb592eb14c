"""Random statements for tables on which two engines write in turn, and what rows there are after each by DuckDB."""

import json
import random

from answers import quoted, sorted_rows

BASE = {"id": "BIGINT", "k": "INT", "v": "STRING", "p": "STRING", "day": "DATE", "x": "DOUBLE"}
TEXTS = ["a", "b", "ü", "x y", "50%", "a/b", "k=1", "c:d", "", None]
NUMBERS = ["0.5", "-2.25", "1e300", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "NULL", "123.456"]
DUCK = {"STRING": "VARCHAR", "INT": "BIGINT"}
MANY = 1500


class Model:
    """The rows that a table must hold, and those of its earlier versions that are kept."""

    def __init__(self, columns, partitioned, generated):
        import duckdb

        self.engine = duckdb.connect()
        self.columns = dict(columns)
        self.partitioned = partitioned
        listed = ", ".join(f"{name} {DUCK.get(kind, kind)}{generated.get(name, '')}" for name, kind in columns.items())
        self.engine.execute(f"CREATE TABLE m ({listed})")
        self.computed = set(generated)
        self.versions = {}

    def run(self, *statements):
        for text in statements:
            self.engine.execute(text)
        if self.partitioned:
            # An empty text is no value of a partition column: it is taken for NULL.
            self.engine.execute("UPDATE m SET p = NULL WHERE p = ''")

    def count(self):
        return self.engine.execute("SELECT count(*) FROM m").fetchone()[0]

    def last_id(self):
        return self.engine.execute("SELECT coalesce(max(id), 0) FROM m").fetchone()[0]

    def rows(self):
        return self.engine.execute("SELECT * FROM m").fetchall()

    def keep(self, version):
        """The rows as they are now are those of every version up to this one that is not known yet."""
        rows, first = self.rows(), max(self.versions, default=version - 1) + 1
        for each in range(first, version + 1):
            self.versions[each] = (dict(self.columns), rows)

    def restorable(self):
        return [version for version, (columns, _) in sorted(self.versions.items()) if columns == self.columns]

    def restore(self, version):
        names = [name for name in self.columns if name not in self.computed or name == "c"]
        rows = [[value for name, value in zip(self.columns, row) if name in names] for row in self.versions[version][1]]
        self.engine.execute("DELETE FROM m")
        if rows:
            self.engine.executemany(f"INSERT INTO m ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", rows)


def model_rows(rows, schema):
    """Rows of the model as `answers` shows those of the engines."""
    import math

    def text(value):
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value.isoformat() if hasattr(value, "isoformat") else value

    return sorted_rows([[text(value) for value in row] for row in rows], schema)


class Statement:
    """A statement in the words of Delta and of the model; `before` are settings that it needs."""

    def __init__(self, text, *model, before=None, act=None):
        self.text, self.model, self.before, self.act = text, model, before, act


class Author:
    """Draws statements for a table as it is."""

    def __init__(self, model, partitioned, clustered, widened):
        self.model, self.partitioned, self.clustered, self.widened = model, partitioned, clustered, widened

    def literal(self, chance):
        text = chance.choice(TEXTS)
        return "NULL" if text is None else f"'{text}'"

    def day(self, chance):
        return chance.choice([f"DATE '2026-{chance.randint(1, 3):02}-0{chance.randint(1, 3)}'", "NULL"])

    def list(self, chance):
        """Columns that an INSERT names: optional ones at random."""
        return [name for name in self.model.columns if name in BASE or name not in ("g",) and chance.random() < 0.5]

    def source(self, chance, names, first, count, p=None):
        """Rows of their own as SELECT, for both."""
        def item(name):
            return {
                "id": f"id + {first}", "k": f"CAST((id * 7 + {chance.randint(0, 9)}) % 23 AS INT)", "v": f"concat('{chance.choice('abc')}', id % 5)",
                "p": p or f"CASE id % 3 WHEN 0 THEN {self.literal(chance)} WHEN 1 THEN {self.literal(chance)} ELSE 'z' END",
                "day": self.day(chance), "x": f"CASE WHEN id % 4 = 0 THEN {chance.choice(NUMBERS)} ELSE id / 8 END", "g": f"(id + {first}) * 2",
            }.get(name, "concat('n', id)")

        listed = ", ".join(f"{item(name)} AS {name}" for name in names)
        return f"SELECT {listed} FROM range({count})", f"SELECT {listed} FROM (SELECT range AS id FROM range({count}))"

    def condition(self, chance):
        a = chance.randint(2, 9)
        return chance.choice([
            f"id % {a} = {chance.randint(0, a - 1)}", f"k > {chance.randint(8, 22)}", f"k BETWEEN {a} AND {a + 4}", f"v LIKE '{chance.choice('abc')}%'",
            f"v = '{chance.choice('abc')}{chance.randint(0, 4)}' AND id % 2 = 0", f"x > {chance.randint(-3, 30)}", f"x < {chance.randint(-3, 8)} OR k = {a}",
            "x IS NULL", "x = CAST('NaN' AS DOUBLE)", f"NOT (k IN (1, {a}, 22) OR id % 2 = 0)", f"id < {chance.randint(0, max(1, self.model.last_id()))} AND k % 5 = 1",
            f"day >= DATE '2026-02-0{chance.randint(1, 3)}' AND k < {a}", f"p = {self.literal(chance)} AND id % 3 = 1", f"coalesce(x, -1) = -1 AND k <> {a}",
            f"length(v) = 2 AND id % 4 = {a % 4}",
        ])

    def by_partition(self, chance):
        return chance.choice([
            f"p = '{chance.choice([t for t in TEXTS if t])}'", "p IS NULL", "day IS NULL AND p <> 'a'", f"day = DATE '2026-0{chance.randint(1, 3)}-01'",
            "p IN ('a/b', 'ü') OR day < DATE '2026-01-02'", f"p = 'z' AND day > DATE '2026-02-01' AND id % 2 = {chance.randint(0, 1)}",
        ])

    # What both can do.

    def insert_values(self, chance):
        names = list(BASE)
        rows = [
            f"({self.model.last_id() + n}, {chance.randint(0, 22)}, '{chance.choice('abc')}', {self.literal(chance)}, {self.day(chance)}, {chance.choice(NUMBERS)})"
            for n in range(1, chance.randint(2, 5))
        ]
        text = f"({', '.join(names)}) VALUES {', '.join(rows)}"
        return Statement(f"INSERT INTO {{t}} {text}", f"INSERT INTO m {text}")

    def insert_select(self, chance):
        names = self.list(chance)
        ours, model = self.source(chance, names, self.model.last_id() + 1, chance.randint(1, 120))
        listed = ", ".join(names)
        return Statement(f"INSERT INTO {{t}} ({listed}) {ours}", f"INSERT INTO m ({listed}) {model}")

    def insert_itself(self, chance):
        if self.model.count() > MANY:
            return self.delete(chance)
        listed, rest = ", ".join(BASE), ", ".join(list(BASE)[1:])
        text = f"SELECT id + {self.model.last_id() + 1}, {rest} FROM {{}} WHERE {self.condition(chance)}"
        return Statement(f"INSERT INTO {{t}} ({listed}) {text.format('{t}')}", f"INSERT INTO m ({listed}) {text.format('m')}")

    def overwrite(self, chance):
        names = list(BASE)
        ours, model = self.source(chance, names, self.model.last_id() + 1, chance.randint(20, 200))
        listed = ", ".join(names)
        return Statement(f"INSERT OVERWRITE {{t}} ({listed}) {ours}", "DELETE FROM m", f"INSERT INTO m ({listed}) {model}")

    def overwrite_partition(self, chance):
        if not self.partitioned:
            return self.insert_select(chance)
        names = [name for name in BASE if name != "p"]
        ours, model = self.source(chance, names, self.model.last_id() + 1, chance.randint(1, 40))
        p = chance.choice([text for text in TEXTS if text])
        extra = ", ".join(f"'{name}' AS {name}" for name in self.model.columns if name not in BASE)
        wrapped = lambda rows: f"SELECT {', '.join(names)}{', ' + extra if extra else ''} FROM ({rows})"  # noqa: E731
        return Statement(
            f"INSERT OVERWRITE {{t}} PARTITION (p = '{p}') {wrapped(ours)}", f"DELETE FROM m WHERE p = '{p}'",
            f"INSERT INTO m ({', '.join([*names, *[n for n in self.model.columns if n not in BASE]])}, p) SELECT *, '{p}' FROM ({wrapped(model)})",
        )

    def overwrite_dynamic(self, chance):
        if not self.partitioned:
            return self.delete(chance)
        names = list(BASE)
        ours, model = self.source(chance, names, self.model.last_id() + 1, chance.randint(1, 30))
        listed = ", ".join(names)
        return Statement(
            f"INSERT OVERWRITE {{t}} ({listed}) {ours}",
            f"DELETE FROM m WHERE EXISTS (SELECT 1 FROM ({model}) n WHERE nullif(n.p, '') IS NOT DISTINCT FROM m.p AND n.day IS NOT DISTINCT FROM m.day)",
            f"INSERT INTO m ({listed}) {model}", before=("spark.sql.sources.partitionOverwriteMode", "dynamic"),
        )

    def replace_where(self, chance):
        names = [name for name in self.model.columns]
        stored = [name for name in names if name != "g"]
        if chance.random() < 0.5:
            first = chance.randint(0, self.model.last_id() + 1)
            count = chance.randint(0, 60)
            condition, p = f"id >= {first} AND id < {first + max(count, chance.randint(1, 60))}", None
        else:
            text = chance.choice([text for text in TEXTS if text])
            first, count, condition, p = self.model.last_id() + 1, chance.randint(1, 40), f"p = '{text}'", f"'{text}'"
        ours, model = self.source(chance, names, first, count, p)
        return Statement(
            f"INSERT INTO {{t}} REPLACE WHERE {condition} {ours}", f"DELETE FROM m WHERE {condition}",
            f"INSERT INTO m ({', '.join(stored)}) SELECT {', '.join(stored)} FROM ({model})",
        )

    def delete(self, chance):
        condition = self.condition(chance)
        return Statement(f"DELETE FROM {{t}} WHERE {condition}", f"DELETE FROM m WHERE {condition}")

    def delete_partition(self, chance):
        condition = self.by_partition(chance)
        return Statement(f"DELETE FROM {{t}} WHERE {condition}", f"DELETE FROM m WHERE {condition}")

    def delete_all(self, chance):
        return Statement("DELETE FROM {t}", "DELETE FROM m")

    def optimize(self, chance):
        return Statement("OPTIMIZE {t}")

    def zorder(self, chance):
        return Statement("OPTIMIZE {t}" if self.clustered else f"OPTIMIZE {{t}} ZORDER BY ({chance.choice(['id', 'k', 'v, k'])})")

    def purge(self, chance):
        return Statement("REORG TABLE {t} APPLY (PURGE)")

    def set_property(self, chance):
        return Statement(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('note' = '{chance.randint(0, 999)}')")

    def add_column(self, chance):
        added = [name for name in self.model.columns if name not in BASE]
        if len(added) > 3:
            return self.set_property(chance)
        name = f"n{len(added)}"
        self.model.columns[name] = "STRING"
        return Statement(f"ALTER TABLE {{t}} ADD COLUMN {name} STRING", f"ALTER TABLE m ADD COLUMN {name} VARCHAR")

    def widen(self, chance):
        if not self.widened or self.model.columns["k"] == "BIGINT":
            return self.insert_values(chance)
        self.model.columns["k"] = "BIGINT"
        return Statement("ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT")

    def restore(self, chance):
        earlier = [version for version in self.model.restorable() if version < max(self.model.versions)]
        if not earlier:
            return self.set_property(chance)
        version = chance.choice(earlier[-6:])
        return Statement(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}", act=lambda: self.model.restore(version))

    def vacuum(self, chance):
        newest = max(self.model.versions)
        return Statement("VACUUM {t} RETAIN 0 HOURS", act=lambda: [self.model.versions.pop(old) for old in list(self.model.versions) if old < newest])

    def checkpoint(self, chance):
        return Statement("CHECKPOINT")

    # What only Spark can do.

    def update(self, chance):
        condition = self.condition(chance)
        change = f"SET k = k + 1, v = concat(v, '{chance.choice('!?')}') WHERE {condition}"
        return Statement(f"UPDATE {{t}} {change}", f"UPDATE m {change}")

    def merge(self, chance):
        condition, first = self.condition(chance), self.model.last_id() + 1
        return Statement(
            f"MERGE INTO {{t}} t USING (SELECT DISTINCT id FROM {{t}} WHERE {condition} UNION SELECT {first}L) s ON t.id = s.id "
            "WHEN MATCHED AND t.k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
            f"CREATE OR REPLACE TEMP TABLE s AS SELECT DISTINCT id FROM m WHERE {condition}",
            "DELETE FROM m WHERE id IN (SELECT id FROM s) AND k % 2 = 0",
            "UPDATE m SET v = 'merged' WHERE id IN (SELECT id FROM s)",
            f"INSERT INTO m (id, v) VALUES ({first}, 'new')",
        )


BOTH = {
    "insert_values": 10, "insert_select": 14, "insert_itself": 6, "overwrite": 3, "overwrite_partition": 4, "overwrite_dynamic": 4, "replace_where": 8,
    "delete": 18, "delete_partition": 7, "delete_all": 1, "optimize": 4, "zorder": 3, "purge": 3, "set_property": 2, "add_column": 2, "widen": 2,
    "restore": 4, "vacuum": 2, "checkpoint": 3,
}
SPARK = {"update": 8, "merge": 6}


def draw(chance, count):
    """Turns: (writer, kind, seed of the statement's own chance). Any of them can be left out and the others still mean something."""
    turns = []
    for _ in range(count):
        spark = chance.random() < 0.35
        weights = {**BOTH, **SPARK} if spark else BOTH
        kind = chance.choices(list(weights), list(weights.values()))[0]
        turns.append(("spark" if spark else "ours", kind, chance.randrange(2**32)))
    return turns


def written(author, turn):
    """The statement of a turn, for the table as it is now."""
    _, kind, seed = turn
    return getattr(author, kind)(random.Random(seed))


def in_versions(table, columns_of):
    """One query for the rows of many versions, each with its number in front."""
    return "; ".join(
        f"SELECT {version} AS __version, {', '.join(quoted(name) for name in columns)} FROM {table.name} VERSION AS OF {version}"
        for version, columns in columns_of.items()
    )


def by_version(lines):
    """Rows that such a query gave, by version."""
    found = {}
    for line in lines:
        version, *row = json.loads(line).values()
        found.setdefault(version, []).append(row)
    return found
