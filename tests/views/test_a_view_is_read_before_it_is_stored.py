"""Goal: who waits for a view is told its newest changes by its replica, and they are right.

Method: one client writes and reads in turn; every read is compared with a model, for a view of a
few rows, one of many and one that is read as a whole. The adapter counts who told it first.
"""

import random
import re
import urllib.request

from tests.support.server import Server


def told_by_replicas(server: Server) -> float:
    with urllib.request.urlopen(f"http://{server.http[0]}/metrics") as page:
        text = page.read().decode()
    found = re.search(r'evertide_view_reads_ahead_total{told_by="replica"} (\S+)', text)
    return 0.0 if found is None else float(found[1])


def test_every_read_is_right_and_most_are_told_by_the_replica(engine_server: Server) -> None:
    draw = random.Random(20)
    with engine_server.connect() as connection:
        connection.execute("CREATE TABLE ahead_t (id int, k int, v int)")
        connection.execute("INSERT INTO ahead_t SELECT n, n, 1 FROM generate_series(1, 2000) n")
        for name, key in (("ahead_few", "k % 3"), ("ahead_many", "k")):
            connection.execute(
                f"CREATE MATERIALIZED VIEW {name} AS SELECT {key} AS g, count(*) AS n,"
                f" sum(v) AS s FROM ahead_t GROUP BY {key}"
            )
        rows = {n: (n, 1) for n in range(1, 2001)}
        for name in ("ahead_few", "ahead_many"):
            connection.execute(f"SELECT count(*) FROM {name}")
        before = told_by_replicas(engine_server)
        last = "SELECT executor FROM mz_internal.mz_tick_records ORDER BY started_at DESC LIMIT 1"
        by_jobs = connection.execute(last).fetchone() == ("job",)  # each of which takes a second
        for number in range(9 if by_jobs else 60):
            chosen = draw.choice(list(rows))
            match number % 3:
                case 0:
                    fresh = 10_000 + number
                    rows[fresh] = (draw.randint(1, 2000), draw.randint(-5, 5))
                    connection.execute(
                        f"INSERT INTO ahead_t VALUES ({fresh}, {rows[fresh][0]}, {rows[fresh][1]})"
                    )
                    touched = rows[fresh][0]
                case 1:
                    rows[chosen] = (rows[chosen][0], draw.randint(-5, 5))
                    connection.execute(
                        f"UPDATE ahead_t SET v = {rows[chosen][1]} WHERE id = {chosen}"
                    )
                    touched = rows[chosen][0]
                case _:
                    touched = rows.pop(chosen)[0]
                    connection.execute(f"DELETE FROM ahead_t WHERE id = {chosen}")
            many = [v for k, v in rows.values() if k == touched]
            found = connection.execute(
                "SELECT n, s FROM ahead_many WHERE g = %s", (touched,)
            ).fetchall()
            assert found == ([(len(many), sum(many))] if many else [])
            few = [v for k, v in rows.values() if k % 3 == touched % 3]
            found = connection.execute(
                "SELECT n, s FROM ahead_few WHERE g = %s", (touched % 3,)
            ).fetchall()
            assert found == [(len(few), sum(few))]
            if number % 10 == 0:
                whole = connection.execute("SELECT sum(n), sum(s) FROM ahead_few").fetchall()
                assert whole == [(len(rows), sum(v for _, v in rows.values()))]
        assert told_by_replicas(engine_server) > before
        connection.execute("DROP TABLE ahead_t CASCADE")
