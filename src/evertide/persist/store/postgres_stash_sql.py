"""The stash in a PostgreSQL schema: its tables, and the functions that change and read them.

Who appends holds the one row of `stash`, so the tables of the kinds have one writer at a time and
need no locks of their own. Tables are found by their names, so a function is one statement whatever
kinds there are.
"""

from typing import Final

from evertide.persist.store.stash import MERGE_EVERY, MERGE_ROWS, PREFIX

# Raised where rows are of a kind that has no table; the message names the kinds.
NO_TABLE: Final = "ET004"

TABLES: Final = """
CREATE TABLE SCHEMA.stash (
    one boolean PRIMARY KEY CHECK (one),
    since bigint NOT NULL,
    upper bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
INSERT INTO SCHEMA.stash VALUES (true, 0, 0);
"""

# For one kind. Keys are found by their hash, because they may be longer than a tree takes.
TABLE: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    diff bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS {by_key} ON {table} USING hash (key);
CREATE INDEX IF NOT EXISTS {by_ts} ON {table} (ts);
"""

_PLACES: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.stash_places() RETURNS TABLE (kind text, place regclass)
LANGUAGE sql STABLE AS $evertide$
    SELECT substr(c.relname::text, {len(PREFIX) + 1}), c.oid::regclass
    FROM SCHEMA.stash b JOIN pg_class own ON own.oid = b.tableoid
    JOIN pg_class c ON c.relnamespace = own.relnamespace AND c.relkind = 'r'
    WHERE starts_with(c.relname::text, '{PREFIX}') ORDER BY c.relname
$evertide$;
"""

# Stable, so that everything in it is read as of the moment at which the calling statement began.
# The first row holds since and upper.
_PAGE: Final = """
CREATE OR REPLACE FUNCTION SCHEMA.stash_page(lower_ts bigint, kinds text[])
RETURNS TABLE (kind text, key text, value text, ts bigint, diff bigint)
LANGUAGE plpgsql STABLE AS $evertide$
DECLARE
    found record;
BEGIN
    RETURN QUERY SELECT NULL, NULL, NULL, b.since, b.upper FROM SCHEMA.stash b WHERE b.one;
    FOR found IN SELECT p.kind, p.place FROM SCHEMA.stash_places() p
        WHERE kinds IS NULL OR p.kind = ANY (kinds)
    LOOP
        RETURN QUERY EXECUTE format(
            'SELECT $1, r.key::text, r.value::text, r.ts, r.diff FROM %s r WHERE r.ts >= $2',
            found.place)
        USING found.kind, lower_ts;
    END LOOP;
END $evertide$;
"""

# Rows beyond since are found by ts, those that add to them by key; other plans read whole tables.
_MERGE: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.stash_merge(since bigint, wanted bigint)
RETURNS bigint LANGUAGE plpgsql SET enable_hashjoin = off SET enable_mergejoin = off AS $evertide$
DECLARE
    found record;
    first_ts bigint;
    beyond_ts bigint;
BEGIN
    FOR found IN SELECT p.place FROM SCHEMA.stash_places() p LOOP
        EXECUTE format('SELECT r.ts FROM %s r WHERE r.ts > $1 AND r.ts <= $2
            ORDER BY r.ts LIMIT 1', found.place)
        INTO first_ts USING since, wanted;
        EXECUTE format('SELECT r.ts FROM %s r WHERE r.ts > $1 AND r.ts <= $2
            ORDER BY r.ts LIMIT 1 OFFSET {MERGE_ROWS}', found.place)
        INTO beyond_ts USING since, wanted;
        IF beyond_ts IS NOT NULL THEN
            wanted := least(wanted, greatest(first_ts, beyond_ts - 1));
        END IF;
    END LOOP;
    FOR found IN SELECT p.place FROM SCHEMA.stash_places() p LOOP
        -- Rows that history after since adds to, replaced by their sums. The statement sees the
        -- table as it was before, so it does not delete what it inserts.
        EXECUTE format('
            WITH sums AS MATERIALIZED (
                SELECT r.key, r.value, sum(r.diff)::bigint AS diff
                FROM (SELECT DISTINCT n.key, n.value FROM %1$s n
                    WHERE n.ts > $1 AND n.ts <= $2) AS moved
                JOIN %1$s r USING (key, value)
                WHERE r.ts <= $2 GROUP BY r.key, r.value HAVING count(*) > 1),
            gone AS (
                DELETE FROM %1$s r USING sums s
                WHERE r.key = s.key AND r.value = s.value AND r.ts <= $2)
            INSERT INTO %1$s SELECT s.key, s.value, $2, s.diff FROM sums s WHERE s.diff <> 0',
            found.place)
        USING since, wanted;
    END LOOP;
    RETURN wanted;
END $evertide$;
"""

_APPEND: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.stash_append(
    write_ts bigint, wanted bigint, kinds text[], keys text[], new_values text[], diffs bigint[]
) RETURNS void LANGUAGE plpgsql AS $evertide$
DECLARE
    found record;
BEGIN
    FOR found IN SELECT p.kind, p.place FROM SCHEMA.stash_places() p WHERE p.kind = ANY (kinds) LOOP
        EXECUTE format('INSERT INTO %s SELECT w.key, w.value, $1, w.diff
            FROM unnest($2, $3, $4, $5) AS w (kind, key, value, diff)
            WHERE w.kind = $6', found.place)
        USING write_ts, kinds, keys, new_values, diffs, found.kind;
    END LOOP;
    UPDATE SCHEMA.stash b SET upper = write_ts + 1;
    UPDATE SCHEMA.stash b SET since = SCHEMA.stash_merge(b.since, wanted)
    WHERE b.since + {MERGE_EVERY} <= wanted;
END $evertide$;
"""

# Everything that `change` does, together with the stash and the next epoch. Where the stash is in
# the way its upper is told as an object. NULL: ask again, transactions hold up the epoch.
_CHANGE: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.change_with_stash(
    own_epoch bigint, own_writer text, own_number bigint,
    shard_ids text[], expected bigint[], new_values bytea[],
    applied text[], applied_ts bigint[], claimed text, claimed_ts bigint,
    stash_upper bigint, stash_ts bigint, stash_since bigint,
    kinds text[], keys text[], row_values text[], diffs bigint[], raises boolean
) RETURNS text LANGUAGE plpgsql AS $evertide$
DECLARE
    found_upper bigint;
    missing text;
    outcome text;
BEGIN
    IF raises AND NOT SCHEMA.hold_epoch() THEN
        RETURN NULL;
    END IF;
    PERFORM SCHEMA.check_epoch(own_epoch);
    IF stash_upper IS NOT NULL THEN
        SELECT string_agg(DISTINCT w.kind, ', ') INTO missing FROM unnest(kinds) AS w (kind)
        WHERE w.kind NOT IN (SELECT p.kind FROM SCHEMA.stash_places() p);
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = '{NO_TABLE}', MESSAGE = missing;
        END IF;
        SELECT b.upper INTO found_upper FROM SCHEMA.stash b WHERE b.one FOR NO KEY UPDATE;
        IF found_upper <> stash_upper THEN
            RETURN json_build_object('upper', found_upper);
        END IF;
    END IF;
    outcome := SCHEMA.change(own_epoch, own_writer, own_number, false, shard_ids, expected,
        new_values, applied, applied_ts, claimed, claimed_ts);
    IF outcome <> '[]' THEN
        RETURN outcome;
    END IF;
    IF stash_upper IS NOT NULL THEN
        PERFORM SCHEMA.stash_append(stash_ts, stash_since, kinds, keys, row_values, diffs);
    END IF;
    IF raises THEN
        PERFORM SCHEMA.next_epoch(own_epoch, own_writer || ' ' || own_number);
        -- It counts as the new generation's, which may ask for it as long as that lasts.
        UPDATE SCHEMA.writers w SET epoch = own_epoch + 1 WHERE w.writer = own_writer;
    END IF;
    RETURN outcome;
END $evertide$;
"""

FUNCTIONS: Final = "".join((_PLACES, _PAGE, _MERGE, _APPEND, _CHANGE))

STATEMENTS: Final = {
    "stash_kinds": "SELECT p.kind FROM SCHEMA.stash_places() p",
    "stash_upper": "SELECT b.upper FROM SCHEMA.stash b WHERE b.one",
    "stash_page(bigint, text[])": "SELECT * FROM SCHEMA.stash_page($1, $2)",
    """change_with_stash(bigint, text, bigint, text[], bigint[], bytea[], text[], bigint[],
        text, bigint, bigint, bigint, bigint, text[], text[], text[], bigint[], boolean)""": """
        SELECT SCHEMA.change_with_stash($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
            $14, $15, $16, $17, $18)""",
}
