"""One Spark session with Delta Lake and a catalog of Iceberg tables, strict about what it reads."""

import glob
import os

HOME = os.environ.get("LAKESMITH_ORACLE_HOME", os.path.expanduser("~/.cache/lakesmith"))


def start(work, memory="2g"):
    """A local session; `work` takes its scratch files. The JVM lives as long as the process."""
    from pyspark.sql import SparkSession

    jars = sorted(glob.glob(f"{HOME}/jars/*.jar"))
    if not jars:
        raise RuntimeError(f"no jars in {HOME}/jars: run oracle/setup.sh")
    options = {
        "spark.jars": ",".join(jars),
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dderby.system.home={work}/derby",
        "spark.local.dir": f"{work}/local",
        "spark.sql.warehouse.dir": f"{work}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # The tables are tiny: compiling queries would take longer than running them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # VACUUM lists with thousands of tasks otherwise.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Iceberg tables in folders: ice.<database>.<table>.
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"{work}/iceberg",
        "spark.sql.catalog.ice.cache-enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "2",
        # What we commit must agree with what Spark computes, or the read fails.
        "spark.databricks.delta.checksum.mismatch.fatal": "true",
        "spark.databricks.delta.stateReconstructionValidation.enabled": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    }
    builder = SparkSession.builder.master("local[2]").appName("lakesmith-oracle")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
