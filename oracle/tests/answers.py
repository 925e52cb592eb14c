"""Rows as Spark and as we answer with them, made comparable."""

import base64
import datetime
import decimal
import json
import math
import struct


def shown(value, kind):
    """A value of Spark's as JSON has it."""
    name = kind.typeName()
    if value is None:
        return None
    if name == "decimal":
        return format(value, "f")
    if name == "timestamp":
        return value.replace(tzinfo=datetime.timezone.utc).isoformat()
    if name in ("date", "timestamp_ntz"):
        return value.isoformat()
    if name == "binary":
        return base64.b64encode(bytes(value)).decode()
    if name in ("double", "float"):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if name == "struct":
        return {field.name: shown(value[field.name], field.dataType) for field in kind.fields}
    if name == "array":
        return [shown(item, kind.elementType) for item in value]
    if name == "map":
        return {str(key): shown(item, kind.valueType) for key, item in value.items()}
    assert not isinstance(value, (decimal.Decimal, datetime.date))
    return value


def near(ours, theirs):
    """Floats of the shorter type have fewer digits in ours than in Python's."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-6) and math.copysign(1, ours) == math.copysign(1, theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(near(o, t) for o, t in zip(ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(near(ours[key], theirs[key]) for key in ours)
    return type(ours) is type(theirs) and ours == theirs


def plain(value):
    """Objects again of what was read as pairs."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return {key: plain(item) for key, item in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def exact(value, kind):
    """A value as JSON has it, by Spark's type: floats of the shorter type have fewer digits in ours than in Python's."""
    name = kind.typeName()
    if value is None:
        return None
    if name == "float":
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    if name == "struct":
        return {field.name: exact(value[field.name], field.dataType) for field in kind.fields}
    if name == "array":
        return [exact(item, kind.elementType) for item in value]
    if name == "map":
        return {key: exact(item, kind.valueType) for key, item in value.items()}
    if name == "variant":
        return json.loads(value)
    return value


def sorted_rows(rows, schema):
    """Texts of rows given as JSON has them, in one order."""
    kinds = [field.dataType for field in schema.fields]
    return sorted(json.dumps([exact(value, kind) for value, kind in zip(row, kinds, strict=True)], sort_keys=True) for row in rows)


def spark_rows(table, version=None):
    """All rows of a table as Spark reads them, with the schema."""
    from pyspark.sql import functions as F

    frame = table.frame(version)
    schema = frame.schema
    variants = {field.name for field in schema.fields if field.dataType.typeName() == "variant"}
    columns = [F.col(quoted(name)) for name in frame.columns]
    columns = [F.to_json(column).alias(name) if name in variants else column for column, name in zip(columns, frame.columns)]
    read = frame.select(*columns)
    kinds = [field.dataType for field in read.schema.fields]
    return sorted_rows([[shown(value, kind) for value, kind in zip(row, kinds)] for row in read.collect()], schema), schema


def our_rows(table, lakesmith, schema, version=None):
    """All rows of a table as we read them."""
    at = "" if version is None else f" VERSION AS OF {version}"
    lines = lakesmith.run("sql", f"SELECT * FROM {table.name}{at}", "--json").splitlines()
    return sorted_rows([json.loads(line).values() for line in lines], schema)


def same_answers(table, lakesmith, version=None):
    """Spark and we read the same rows. Gives them."""
    theirs, schema = spark_rows(table, version)
    ours = our_rows(table, lakesmith, schema, version)
    assert ours == theirs, (table.path, version)
    return ours


def quoted(name):
    return "`" + name.replace("`", "``") + "`"
