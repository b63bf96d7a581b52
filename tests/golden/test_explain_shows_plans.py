"""Goal: EXPLAIN says what explain.txt says. `make golden` rewrites it; review reads the diff.

The file is a list of statements separated by lines of ====; the text that EXPLAIN gives follows
after ----.
"""

import uuid
from pathlib import Path

from tests.support.server import Server

FILE = Path(__file__).parent / "explain.txt"


def test_explain(server: Server, rewrite_golden: bool) -> None:
    blocks = FILE.read_text().rstrip("\n").split("\n====\n")
    schema = f"explain_{uuid.uuid4().hex[:8]}"
    found = []
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path = {schema}".encode())
        for block in blocks:
            sql, explains, _ = block.partition("\n----")
            cursor = connection.execute(sql.encode())
            if explains:
                ((text,),) = cursor.fetchall()
                sql = f"{sql}\n----\n{text}"
            found.append(sql)
    if rewrite_golden:
        FILE.write_text("\n====\n".join(found) + "\n")
    else:
        assert found == blocks
