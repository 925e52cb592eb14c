"""A Delta table as Spark and the log itself show it."""

import glob
import json
import os
import re
import shutil


class Table:
    def __init__(self, spark, path):
        self.spark = spark
        self.path = path

    def __str__(self):
        return self.path

    def __fspath__(self):
        return self.path

    @property
    def name(self):
        return "delta.`" + self.path.replace("`", "``") + "`"

    def sql(self, text):
        """Rows of a statement in which {t} stands for the table."""
        return self.spark.sql(text.replace("{t}", self.name)).collect()

    def twin(self):
        """A copy beside the table, to let another engine do the same work on."""
        return self.copy(f"{self.path}-twin-{self.version()}")

    def copy(self, path):
        shutil.copytree(self.path, path)
        return Table(self.spark, str(path))

    def append(self, frame, files=1):
        frame.repartition(files).write.format("delta").mode("append").save(self.path)

    def frame(self, version=None):
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path)

    def fingerprint(self, version=None, row_ids=False):
        """(rows, hash of the multiset of rows, schema): two tables with the same rows in any order give the same."""
        from pyspark.sql import functions as F

        frame = self.frame(version)
        schema = frame.schema.json()
        columns = named(frame)
        if row_ids:
            columns += [F.col("_metadata.row_id").alias("__id"), F.col("_metadata.row_commit_version").alias("__version")]
        row = row_text(columns)
        summary = frame.select(row.alias("row")).agg(
            F.count(F.lit(1)).alias("rows"), F.sum(F.xxhash64("row").cast("decimal(38,0)")).alias("hash")
        ).first()
        return summary.rows, str(summary.hash), schema

    def detail(self):
        return self.sql("DESCRIBE DETAIL {t}")[0]

    def version(self):
        names = (os.path.basename(file) for file in glob.glob(glob.escape(self.path) + "/_delta_log/*.json"))
        return max(int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name))

    def commit(self, version=None):
        """Actions of a commit, in order: (kind, body)."""
        version = self.version() if version is None else version
        with open(f"{self.path}/_delta_log/{version:020d}.json", encoding="utf-8") as file:
            return [next(iter(json.loads(line).items())) for line in file if line.strip()]

    def commit_info(self, version=None):
        return next(body for kind, body in self.commit(version) if kind == "commitInfo")

    def snapshot(self):
        """Spark's view of the newest version, read anew from the log, and Spark's log."""
        log = self.spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog
        log.clearCache()
        log = log.forTable(self.spark._jsparkSession, self.path)
        return log.update(False, getattr(log, "update$default$2")(), getattr(log, "update$default$3")()), log

    def agrees_with_checksum(self):
        """True if Spark computes from the actions what the version checksum says; without one there is nothing to compare."""
        snapshot, _ = self.snapshot()
        return snapshot.validateChecksum(getattr(snapshot, "validateChecksum$default$1")())

    def checkpoint(self):
        """Has Spark write a checkpoint of the newest version."""
        snapshot, log = self.snapshot()
        log.checkpoint(snapshot, getattr(log, "checkpoint$default$2")())

    def forget_before_checkpoint(self):
        """Removes the log that the newest checkpoint replaces, so that a reader must trust the checkpoint."""
        log = self.path + "/_delta_log"
        newest = max(int(name[:20]) for name in os.listdir(log) if re.match(r"\d{20}\.checkpoint\.", name))
        for name in os.listdir(log):
            found = re.match(r"\.?(\d{20})\.", name)
            if found and int(found[1]) < newest:
                os.remove(f"{log}/{name}")
        return newest


def named(frame):
    """All columns of a frame, whatever their names hold."""
    from pyspark.sql import functions as F

    return [F.col("`" + name.replace("`", "``") + "`") for name in frame.columns]


def row_text(columns):
    """Values of a row as JSON, to be hashed: a hash of columns takes a null for nothing at all, and -0.0 for 0.0."""
    from pyspark.sql import functions as F

    options = {
        "ignoreNullFields": "false",
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    }
    return F.to_json(F.struct(*columns), options)
