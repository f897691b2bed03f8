#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/store.md against a store: every table and column is described and no other, and every query there runs.
store_docs.py DOCUMENT DATABASE SAMPLES      profiles.db
store_docs.py DOCUMENT DATABASE              signals.db, tables alone"""
import re
import sqlite3
import sys

document = open(sys.argv[1]).read()
db = sqlite3.connect(f"file:{sys.argv[2]}?mode=ro", uri=True)
signals, profiles = re.search(r"\*\*Records of other signals\.(.*?)^## (.*)", document, re.M | re.S).groups()
samples = int(sys.argv[3]) if len(sys.argv) > 3 else None
described_part = signals if samples is None else profiles

described = {}
for row in re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", described_part, re.M):
    described[row[0]] = set(re.findall(r"`(\w+)`", row[1]))
parts = set(re.findall(r"^\| `(\w+)` \| [^|]+ \|$", described_part, re.M))
tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
for table in tables:
    columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    described_here = described.get(table, set())
    if table == "blocks":
        described_here |= parts
    if table == "generations":
        described_here |= set(tables) - {"generations", "blocks", "names"}
    assert columns == described_here & columns, f"{table}: {columns - described_here} not described"
assert set(described) == set(tables), set(described) ^ set(tables)
if samples is None:
    sys.exit()
assert db.execute("PRAGMA application_id").fetchone()[0] == int(re.search(r"application_id` is (\d+)", document).group(1))
assert db.execute("PRAGMA user_version").fetchone()[0] == int(re.search(r"## Schema, version (\d+)", document).group(1))

queries = re.findall(r"```sql\n(.*?)```", document, re.S)
answers = [db.execute(query).fetchall() for query in queries]
assert len(answers) == 3, "queries were added: check their answers here"
assert answers[0] == [("/bin/shop",)], answers[0]
assert sum(count for _, count in answers[1]) == samples, answers[1]
assert answers[2] == [("main", "main.c"), ("work", "")], answers[2]
