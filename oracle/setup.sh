#!/usr/bin/env bash
# Installs the foreign readers that our tests compare with: a Python environment (Spark, deltalake, DuckDB, pytest) and
# the jars of Delta and Iceberg. Result: $LAKESMITH_ORACLE_HOME/{venv,jars} (default ~/.cache/lakesmith). Idempotent, one run at a time.
#   setup.sh            the core set
#   setup.sh services   also an S3 server (SeaweedFS) and an Azure one (Azurite)
# Needs python3 with venv, Java 17 and Maven (services: npm too), and the public package registries.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${LAKESMITH_ORACLE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/lakesmith}
mkdir -p "$home"
exec 9>"$home/setup.lock"
flock 9

for tool in python3 java mvn sha256sum; do
  command -v "$tool" >/dev/null || { echo "oracle/setup.sh: '$tool' is missing; install it first" >&2; exit 1; }
done

core() {
  [ -x "$home/venv/bin/pip" ] || python3 -m venv "$home/venv"
  "$home/venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
  local work
  work=$(mktemp -d "$home/maven.XXXXXX")
  cp "$here/pom.xml" "$work/pom.xml"
  (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=all -DincludeScope=runtime)
  rm -rf "$home/jars"
  mkdir "$home/jars"
  # The other dependencies (Jackson, ANTLR …) are in pyspark already, and a second copy would clash.
  cp "$work"/all/delta-*.jar "$work"/all/unitycatalog-*.jar "$work"/all/iceberg-*.jar "$home/jars/"
  rm -rf "$work"
}

services() {
  "$home/venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements-services.txt"
  command -v npm >/dev/null || { echo "oracle/setup.sh: 'npm' is missing; Azurite needs it" >&2; exit 1; }
  mkdir -p "$home/azurite"
  npm install --silent --no-fund --no-audit --prefix "$home/azurite" azurite@3.37.0
}

# Runs step $1 unless its stamp says that these very versions are there.
once() {
  local stamp
  stamp=$(cat "${@:2}" | sha256sum)
  [ "$(cat "$home/$1.stamp" 2>/dev/null)" != "$stamp" ] || return 0
  echo "oracle/setup.sh: installing '$1' into $home (once, a few minutes)" >&2
  "$1"
  echo "$stamp" >"$home/$1.stamp"
}

once core "$here/setup.sh" "$here/requirements.txt" "$here/pom.xml"
[ "${1:-}" != services ] || once services "$here/setup.sh" "$here/requirements-services.txt"
