"""Data files of one table in the manners of many writers: dictionaries, encodings, page versions, codecs, bloom filters."""

import datetime
import decimal
import json
import os

import pyarrow as pa
import pyarrow.parquet as parquet

SCHEMA = pa.schema([
    ("id", pa.int64()), ("few", pa.string()), ("many", pa.string()), ("i", pa.int32()), ("s", pa.int16()), ("d", pa.float64()),
    ("f", pa.float32()), ("b", pa.bool_()), ("dt", pa.date32()), ("ts", pa.timestamp("us", tz="UTC")), ("d9", pa.decimal128(9, 2)),
    ("d18", pa.decimal128(18, 2)), ("d38", pa.decimal128(38, 4)), ("bin", pa.binary()),
    ("st", pa.struct([("x", pa.int64()), ("y", pa.struct([("t", pa.string()), ("z", pa.float64())]))])),
    ("ls", pa.list_(pa.int32())), ("mp", pa.map_(pa.string(), pa.int32())),
])


class Habits:
    """How often values repeat and are null; the same for a whole table."""

    def __init__(self, chance):
        self.distinct = chance.choice([2, 50, 3000, 10**9])
        self.null_every = chance.choice([3, 10, 10**9])

    def row(self, number):
        """Row `number`; the same number gives the same row."""
        k, null = number % self.distinct, number % self.null_every == 0
        double = float("nan") if number % 97 == 0 else -0.0 if number % 89 == 0 else number / 7
        single = float("nan") if k == 7 else -0.0 if k == 1 else float(k % 2**20)
        return {
            "id": number,
            "few": None if null else f"kind {k}",
            "many": f"{(number * 2654435761) % 2**32:08x}é",
            "i": None if null else (number * 40503) % 2**31 - 2**30,
            "s": number % 1000 - 500,
            "d": None if number % 83 == 0 else double,
            "f": None if null else single,
            "b": number % 3 == 0,
            "dt": None if null else datetime.date(2020, 1, 1) + datetime.timedelta(days=k % 4000),
            "ts": datetime.datetime(2023, 11, 14, tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=number * 12345),
            "d9": decimal.Decimal(number % 10**6 - 500).scaleb(-2),
            "d18": None if null else decimal.Decimal(number * 10**9 - 7).scaleb(-2),
            "d38": decimal.Decimal(number * 10**24 - 500).scaleb(-4),
            "bin": None if null else str(k).encode(),
            "st": None if null else {"x": number, "y": None if number % 4 == 0 else {"t": str(k), "z": float(number)}},
            "ls": None if null else [None if n == 2 else n for n in range(number % 4)],
            "mp": None if null else [("a", number % 2**31), ("b", None)][: number % 3],
        }

    def rows(self, start, end):
        return pa.Table.from_pylist([self.row(number) for number in range(start, end)], schema=SCHEMA)


class Writers:
    """Each method appends rows to a table in a manner drawn from `chance`; `filtered` columns get bloom filters.

    Spark is told its manner by its settings: `conf` sets one.
    """

    def __init__(self, table, chance, conf):
        self.table, self.chance, self.conf = table, chance, conf
        self.commits = 0

    def append(self, writer, rows, filtered=()):
        getattr(self, writer)(rows, filtered)
        self.commits += 1

    def spark(self, rows, filtered):
        """Spark gives no filter to a chunk that has a dictionary alone."""
        pick = self.chance.choice
        dictionaries = ["false"] if filtered else ["true", "true", "false"]
        manner = {
            "parquet.writer.version": pick(["v1", "v1", "v2"]), "parquet.page.size": pick([2000, 1 << 20]), "parquet.enable.dictionary": pick(dictionaries),
            "parquet.block.size": pick([200_000, 128 << 20]), "parquet.page.row.count.limit": pick([500, 20_000]), "parquet.dictionary.page.size": pick([1000, 1 << 20]),
            "parquet.page.write-checksum.enabled": pick(["true", "false"]), "parquet.bloom.filter.max.bytes": 1 << 15, "spark.sql.parquet.outputTimestampType": pick(["TIMESTAMP_MICROS", "INT96"]),
            "spark.sql.parquet.writeLegacyFormat": pick(["false", "false", "true"]),
            "spark.sql.parquet.compression.codec": pick(["snappy", "zstd", "gzip", "uncompressed", "lz4_raw"]),
        }
        for name in SCHEMA.names:
            manner[f"parquet.bloom.filter.enabled#{name}"] = str(name in filtered).lower()
        for key, value in manner.items():
            self.conf(key, value)
        self.table.append(self.table.spark.createDataFrame(rows))

    def pyarrow(self, rows, filtered):
        pick = self.chance.choice
        parquet.write_table(
            rows, self._path(), compression=pick(["snappy", "zstd", "gzip", "none", "lz4", "brotli"]), use_dictionary=pick([True, True, False, ["few", "dt"]]),
            data_page_version=pick(["1.0", "2.0"]), data_page_size=pick([200, 10_000, 1 << 20]), write_batch_size=pick([64, 1024]),
            dictionary_pagesize_limit=pick([500, 1 << 20]), row_group_size=pick([1000, 1 << 20]), write_statistics=pick([True, False]),
            write_page_index=pick([True, False]), write_page_checksum=pick([True, False]), store_decimal_as_integer=pick([True, False]),
            version=pick(["1.0", "2.6"]), coerce_timestamps="us", bloom_filter_options={name: {} for name in filtered} or None,
        )
        self._commit(rows)

    def duckdb(self, rows, filtered):
        """DuckDB chooses itself which columns get filters: those with a dictionary."""
        import duckdb

        pick = self.chance.choice
        limit = 1 << 20 if filtered else pick([10, 10_000, 1 << 20])
        manner = f"ROW_GROUP_SIZE {pick([2048, 100_000])}, COMPRESSION {pick(['snappy', 'zstd', 'gzip', 'uncompressed', 'lz4_raw', 'brotli'])}"
        manner += f", PARQUET_VERSION {pick(['V1', 'V2'])}, DICTIONARY_SIZE_LIMIT {limit}"
        connection = duckdb.connect()
        connection.register("rows", rows)
        connection.execute(f"COPY (SELECT * FROM rows) TO '{self._path()}' (FORMAT parquet, {manner})")
        self._commit(rows)

    def deltalake(self, rows, filtered):
        from deltalake import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake

        pick = self.chance.choice
        usual = {"dictionary_enabled": pick([True, True, False]), "statistics_enabled": pick(["NONE", "CHUNK", "PAGE"])}
        filters = {name: ColumnProperties(bloom_filter_properties=BloomFilterProperties(True), **usual) for name in filtered}
        manner = WriterProperties(
            compression=pick(["SNAPPY", "ZSTD", "GZIP", "UNCOMPRESSED", "LZ4_RAW", "BROTLI"]), data_page_size_limit=pick([500, 1 << 20]),
            dictionary_page_size_limit=pick([500, 1 << 20]), data_page_row_count_limit=pick([100, 20_000]), write_batch_size=pick([64, 1024]),
            max_row_group_size=pick([1000, 1 << 20]), default_column_properties=ColumnProperties(**usual), column_properties=filters or None,
        )
        write_deltalake(self.table.path, rows, mode="append", writer_properties=manner)

    def _path(self):
        return f"{self.table}/foreign-{self.commits}.parquet"

    def _commit(self, rows):
        path = self._path()
        add = {
            "path": os.path.basename(path), "partitionValues": {}, "size": os.path.getsize(path), "modificationTime": 1700000000000 + self.commits,
            "dataChange": True, "stats": json.dumps({"numRecords": rows.num_rows}),
        }
        with open(f"{self.table}/_delta_log/{self.table.version() + 1:020d}.json", "x", encoding="utf-8") as file:
            file.write(json.dumps({"commitInfo": {"operation": "WRITE", "operationParameters": {}, "timestamp": 1700000000000}}) + "\n")
            file.write(json.dumps({"add": add}) + "\n")
