"""What lies in a PostgreSQL schema: tables, and the functions that change them.

A change is one call of one function, so it is one statement and one round trip: no client can
freeze in the middle of it and hold locks meanwhile.

**The epoch.** `check_epoch` takes a ROW SHARE lock on the table `epoch` and then reads it;
`raise_epoch` takes an EXCLUSIVE lock, which conflicts with that, before it writes. Both locks last
to the end of their transaction. The functions are volatile and run under READ COMMITTED, where
every statement inside takes a snapshot of its own: the one that reads the epoch is taken when the
lock is held already. So either a change got its lock first, and raise_epoch returns after it has
ended; or raise_epoch has committed, and the change reads the new epoch. A change that saw the old
epoch can not commit after raise_epoch has returned. Neither reading nor pg_dump is in the way.
A change that raises the epoch itself takes the EXCLUSIVE lock first of all.

**Attempts.** A row of `writers` holds the last number that a writer used and what became of it; no
outcome means that the number is barred. A change whose number is not beyond that undoes itself,
so one that was still on its way when its outcome was asked for changes nothing.

**Order of locks**: epoch, the row of the stash, existing shards by id, timelines, new shards by id,
the writer's row. Nobody waits for one of an earlier kind while holding one of a later.

**Formats.** Whoever finds an earlier one adds the tables that are missing and lays down today's
functions. Processes of an earlier format may still be at work: what they call keeps its arguments
and its meaning.
"""

from typing import Final

from evertide.persist.store import postgres_stash_sql as stash_sql

FORMAT: Final = 3

# SQLSTATEs of our own, raised by the functions; the message is what the client needs to know.
FENCED: Final = "ET001"
BARRED: Final = "ET002"
INSERT_LOST: Final = "ET003"

# Rows that change all the time: room for the new version beside the old one keeps it on its page
# and out of the index; and dead versions are collected by their number, not by a share of rows.
_RESTLESS: Final = """
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000"""

_TABLES: Final = f"""
CREATE TABLE SCHEMA.epoch (
    one boolean PRIMARY KEY CHECK (one),
    format integer NOT NULL,
    epoch bigint NOT NULL,
    opened_by text NOT NULL
);
INSERT INTO SCHEMA.epoch VALUES (true, 0, 0, '');

CREATE TABLE SCHEMA.shards (
    shard_id text COLLATE "C" PRIMARY KEY,
    seqno bigint NOT NULL,
    value bytea NOT NULL
) WITH ({_RESTLESS}, toast_tuple_target = 8160,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 2000);
-- States are packed already; compressing them again costs more than it saves.
ALTER TABLE SCHEMA.shards ALTER COLUMN value SET STORAGE EXTERNAL;

CREATE TABLE SCHEMA.timelines (
    timeline text COLLATE "C" PRIMARY KEY,
    read_ts bigint NOT NULL,
    write_ts bigint NOT NULL
) WITH ({_RESTLESS});

CREATE TABLE SCHEMA.writers (
    writer text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    outcome text,
    epoch bigint NOT NULL,
    used_at timestamptz NOT NULL
) WITH ({_RESTLESS});

CREATE TABLE SCHEMA.notes (name text COLLATE "C" PRIMARY KEY, text text NOT NULL);
"""

# What each format adds to the tables of the one before it; the third has another function.
TABLES: Final = {1: _TABLES, 2: stash_sql.TABLES, 3: ""}

_CHECK_EPOCH: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.check_epoch(own_epoch bigint)
RETURNS void LANGUAGE plpgsql AS $evertide$
DECLARE
    current_epoch bigint;
BEGIN
    LOCK TABLE SCHEMA.epoch IN ROW SHARE MODE;
    SELECT e.epoch INTO current_epoch FROM SCHEMA.epoch e WHERE e.one;
    IF current_epoch <> own_epoch THEN
        RAISE EXCEPTION USING ERRCODE = '{FENCED}', MESSAGE = current_epoch;
    END IF;
END $evertide$;
"""

# False: ask again. A transaction that does not end would hold up the takeover: it waits for a
# client that does not go on, or for a standby. Nobody has been told that it is done, so it may be
# ended.
_HOLD_EPOCH: Final = """
CREATE OR REPLACE FUNCTION SCHEMA.hold_epoch() RETURNS boolean LANGUAGE plpgsql AS $evertide$
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    BEGIN
        LOCK TABLE SCHEMA.epoch IN EXCLUSIVE MODE;
    EXCEPTION WHEN lock_not_available THEN
        PERFORM pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE l.relation = (SELECT e.tableoid FROM SCHEMA.epoch e) AND l.granted
            AND l.mode = 'RowShareLock' AND a.datname = current_database()
            AND a.xact_start < now() - interval '1s';
        RETURN false;
    END;
    PERFORM set_config('lock_timeout', '0', true);
    RETURN true;
END $evertide$;
"""

# raise_epoch: true, the epoch after the expected one is the token's, however often or late this is
# asked; NULL: ask again.
_RAISE_EPOCH: Final = """
CREATE OR REPLACE FUNCTION SCHEMA.next_epoch(expected bigint, token text)
RETURNS void LANGUAGE plpgsql AS $evertide$
BEGIN
    UPDATE SCHEMA.epoch e SET epoch = expected + 1, opened_by = token WHERE e.epoch = expected;
    IF FOUND THEN
        -- The generation just ended may still ask what became of its last attempts.
        DELETE FROM SCHEMA.writers w WHERE w.epoch < expected;
    END IF;
END $evertide$;

CREATE OR REPLACE FUNCTION SCHEMA.raise_epoch(expected bigint, token text)
RETURNS boolean LANGUAGE plpgsql AS $evertide$
BEGIN
    IF NOT SCHEMA.hold_epoch() THEN
        RETURN NULL;
    END IF;
    PERFORM SCHEMA.next_epoch(expected, token);
    RETURN EXISTS (
        SELECT FROM SCHEMA.epoch e WHERE e.epoch = expected + 1 AND e.opened_by = token);
END $evertide$;

-- Only who has raised the epoch, and while nobody went on from there, changes the note.
CREATE OR REPLACE FUNCTION SCHEMA.raise_with_note(
    expected bigint, token text, own_name text, own_text text
) RETURNS boolean LANGUAGE plpgsql AS $evertide$
DECLARE
    raised boolean := SCHEMA.raise_epoch(expected, token);
BEGIN
    IF raised AND own_name IS NOT NULL THEN
        INSERT INTO SCHEMA.notes VALUES (own_name, own_text)
        ON CONFLICT (name) DO UPDATE SET text = excluded.text;
    END IF;
    RETURN raised;
END $evertide$;
"""

# The outcome as JSON: a list of the shards that were not set, or the write_ts that beat the claim.
_CHANGE: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.change(
    own_epoch bigint, own_writer text, own_number bigint, each_alone boolean,
    shard_ids text[], expected bigint[], new_values bytea[],
    applied text[], applied_ts bigint[], claimed text, claimed_ts bigint
) RETURNS text LANGUAGE plpgsql AS $evertide$
DECLARE
    lone boolean := cardinality(shard_ids) = 1;
    found_seqno bigint;
    lost text[];
    made text[];
    outcome text := '[]';
BEGIN
    PERFORM SCHEMA.check_epoch(own_epoch);
    IF lone THEN
        SELECT s.seqno INTO found_seqno FROM SCHEMA.shards s WHERE s.shard_id = shard_ids[1]
        FOR NO KEY UPDATE;
        IF found_seqno IS DISTINCT FROM expected[1] THEN
            lost := shard_ids;
        END IF;
    ELSE
        SELECT array_agg(w.shard_id ORDER BY w.place) INTO lost
        FROM unnest(shard_ids, expected) WITH ORDINALITY AS w (shard_id, seqno, place)
        LEFT JOIN (
            SELECT s.shard_id, s.seqno FROM SCHEMA.shards s WHERE s.shard_id = ANY (shard_ids)
            ORDER BY s.shard_id FOR NO KEY UPDATE
        ) AS found USING (shard_id)
        WHERE found.seqno IS DISTINCT FROM w.seqno;
    END IF;
    IF lost IS NOT NULL AND (NOT each_alone OR cardinality(lost) = cardinality(shard_ids)) THEN
        RETURN to_json(lost);
    END IF;

    IF claimed IS NOT NULL THEN
        IF applied <> '{{}}' THEN
            PERFORM FROM SCHEMA.timelines t WHERE t.timeline = ANY (applied || claimed)
            ORDER BY t.timeline FOR NO KEY UPDATE;
        END IF;
        INSERT INTO SCHEMA.timelines AS t VALUES (claimed, claimed_ts, claimed_ts)
        ON CONFLICT (timeline) DO UPDATE SET read_ts = claimed_ts, write_ts = claimed_ts
        WHERE t.write_ts < claimed_ts;
        IF NOT FOUND THEN
            RETURN (SELECT t.write_ts FROM SCHEMA.timelines t WHERE t.timeline = claimed);
        END IF;
    END IF;
    IF applied <> '{{}}' THEN
        INSERT INTO SCHEMA.timelines AS t
        SELECT w.timeline, max(w.write_ts), max(w.write_ts)
        FROM unnest(applied, applied_ts) AS w (timeline, write_ts)
        GROUP BY w.timeline ORDER BY w.timeline
        ON CONFLICT (timeline) DO UPDATE SET read_ts = greatest(t.read_ts, excluded.write_ts),
            write_ts = greatest(t.write_ts, excluded.write_ts);
    END IF;

    IF array_position(expected, NULL) IS NOT NULL THEN
        WITH made AS (
            INSERT INTO SCHEMA.shards
            SELECT w.shard_id, 1, w.value
            FROM unnest(shard_ids, expected, new_values) AS w (shard_id, seqno, value)
            WHERE w.seqno IS NULL AND w.shard_id <> ALL (coalesce(lost, '{{}}'))
            ORDER BY w.shard_id
            ON CONFLICT DO NOTHING
            RETURNING shard_id)
        SELECT coalesce(array_agg(m.shard_id), '{{}}') INTO made FROM made m;
        SELECT array_agg(w.shard_id ORDER BY w.place) INTO lost
        FROM unnest(shard_ids, expected) WITH ORDINALITY AS w (shard_id, seqno, place)
        WHERE w.shard_id = ANY (lost) OR (w.seqno IS NULL AND w.shard_id <> ALL (made));
        IF lost IS NOT NULL AND NOT each_alone THEN
            RAISE EXCEPTION USING ERRCODE = '{INSERT_LOST}', MESSAGE = to_json(lost);
        ELSIF cardinality(lost) = cardinality(shard_ids) THEN
            RETURN to_json(lost);
        END IF;
    END IF;

    IF lost IS NOT NULL THEN
        outcome := to_json(lost);
    END IF;
    PERFORM SCHEMA.keep_attempt(own_epoch, own_writer, own_number, outcome);
    IF lone THEN
        UPDATE SCHEMA.shards s SET seqno = s.seqno + 1, value = new_values[1]
        WHERE s.shard_id = shard_ids[1] AND s.seqno = expected[1];
    ELSE
        UPDATE SCHEMA.shards s SET seqno = s.seqno + 1, value = w.value
        FROM unnest(shard_ids, expected, new_values) AS w (shard_id, seqno, value)
        WHERE s.shard_id = w.shard_id AND s.seqno = w.seqno;
    END IF;
    RETURN outcome;
END $evertide$;
"""

# The same for one shard that exists, which is what most changes are: the fewest statements, and no
# function within the function, make it a quarter cheaper.
_CHANGE_ONE: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.change_one(
    own_epoch bigint, own_writer text, own_number bigint,
    own_shard text, expected bigint, new_value bytea
) RETURNS text LANGUAGE plpgsql AS $evertide$
DECLARE
    current_epoch bigint;
BEGIN
    LOCK TABLE SCHEMA.epoch IN ROW SHARE MODE;
    SELECT e.epoch INTO current_epoch FROM SCHEMA.epoch e WHERE e.one;
    IF current_epoch <> own_epoch THEN
        RAISE EXCEPTION USING ERRCODE = '{FENCED}', MESSAGE = current_epoch;
    END IF;
    UPDATE SCHEMA.shards s SET seqno = s.seqno + 1, value = new_value
    WHERE s.shard_id = own_shard AND s.seqno = expected;
    IF NOT FOUND THEN
        RETURN json_build_array(own_shard);
    END IF;
    INSERT INTO SCHEMA.writers AS w
    VALUES (own_writer, own_number, '[]', own_epoch, statement_timestamp())
    ON CONFLICT (writer) DO UPDATE SET number = excluded.number, outcome = excluded.outcome,
        epoch = excluded.epoch, used_at = excluded.used_at
    WHERE w.number < excluded.number;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '{BARRED}', MESSAGE = 'this attempt has been barred';
    END IF;
    RETURN '[]';
END $evertide$;
"""

_ATTEMPTS: Final = f"""
CREATE OR REPLACE FUNCTION SCHEMA.keep_attempt(
    own_epoch bigint, own_writer text, own_number bigint, own_outcome text
) RETURNS void LANGUAGE plpgsql AS $evertide$
BEGIN
    INSERT INTO SCHEMA.writers AS w
    VALUES (own_writer, own_number, own_outcome, own_epoch, statement_timestamp())
    ON CONFLICT (writer) DO UPDATE SET number = excluded.number, outcome = excluded.outcome,
        epoch = excluded.epoch, used_at = excluded.used_at
    WHERE w.number < excluded.number;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '{BARRED}', MESSAGE = 'this attempt has been barred';
    END IF;
END $evertide$;

CREATE OR REPLACE FUNCTION SCHEMA.settle(own_writer text, own_number bigint)
RETURNS text LANGUAGE plpgsql AS $evertide$
DECLARE
    kept SCHEMA.writers;
BEGIN
    -- Waits for a change of this writer that is under way: it holds the row.
    INSERT INTO SCHEMA.writers AS w
    SELECT own_writer, own_number, NULL, e.epoch, statement_timestamp() FROM SCHEMA.epoch e
    ON CONFLICT (writer) DO UPDATE SET number = excluded.number, outcome = NULL,
        epoch = excluded.epoch, used_at = excluded.used_at
    WHERE w.number < excluded.number;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO kept FROM SCHEMA.writers w WHERE w.writer = own_writer;
    IF kept.number <> own_number THEN
        RAISE EXCEPTION 'attempt % was not settled before attempt %', own_number, kept.number;
    END IF;
    RETURN kept.outcome;
END $evertide$;
"""

_TIMELINES: Final = """
CREATE OR REPLACE FUNCTION SCHEMA.allocate(
    own_epoch bigint, own_timeline text, at_least bigint, count bigint
) RETURNS bigint LANGUAGE plpgsql AS $evertide$
DECLARE
    last bigint;
BEGIN
    PERFORM SCHEMA.check_epoch(own_epoch);
    INSERT INTO SCHEMA.timelines AS t VALUES (own_timeline, 0, greatest(1, at_least) + count - 1)
    ON CONFLICT (timeline) DO UPDATE SET write_ts = greatest(t.write_ts + 1, at_least) + count - 1
    RETURNING t.write_ts INTO last;
    RETURN last - count + 1;
END $evertide$;

CREATE OR REPLACE FUNCTION SCHEMA.apply(own_epoch bigint, own_timeline text, own_ts bigint)
RETURNS void LANGUAGE plpgsql AS $evertide$
BEGIN
    PERFORM SCHEMA.check_epoch(own_epoch);
    INSERT INTO SCHEMA.timelines AS t VALUES (own_timeline, own_ts, own_ts)
    ON CONFLICT (timeline) DO UPDATE
    SET read_ts = greatest(t.read_ts, own_ts), write_ts = greatest(t.write_ts, own_ts)
    WHERE t.read_ts < own_ts;
END $evertide$;
"""

_NOTES: Final = """
CREATE OR REPLACE FUNCTION SCHEMA.note(own_name text, own_text text)
RETURNS text LANGUAGE plpgsql AS $evertide$
BEGIN
    INSERT INTO SCHEMA.notes VALUES (own_name, own_text) ON CONFLICT DO NOTHING;
    RETURN (SELECT n.text FROM SCHEMA.notes n WHERE n.name = own_name);
END $evertide$;
"""

FUNCTIONS: Final = "".join(
    (
        _CHECK_EPOCH,
        _HOLD_EPOCH,
        _RAISE_EPOCH,
        _ATTEMPTS,
        _CHANGE,
        _CHANGE_ONE,
        _TIMELINES,
        _NOTES,
        stash_sql.FUNCTIONS,
    )
)

# What a connection may ask. Values of unchanged heads are not even looked at; of several heads only
# those are told that changed or do not exist.
STATEMENTS: Final = {
    "current_epoch": "SELECT e.epoch FROM SCHEMA.epoch e WHERE e.one",
    "raise_epoch(bigint, text, text, text)": "SELECT SCHEMA.raise_with_note($1, $2, $3, $4)",
    "head(text, bigint)": """
        SELECT s.seqno, CASE WHEN s.seqno = $2 THEN NULL ELSE s.value END
        FROM SCHEMA.shards s WHERE s.shard_id = $1""",
    "heads(text[], bigint[])": """
        SELECT w.place, s.seqno, s.value
        FROM unnest($1, $2) WITH ORDINALITY AS w (shard_id, seqno, place)
        LEFT JOIN SCHEMA.shards s USING (shard_id)
        WHERE s.seqno IS NULL OR s.seqno IS DISTINCT FROM w.seqno""",
    "shard_ids": "SELECT s.shard_id FROM SCHEMA.shards s ORDER BY s.shard_id",
    """change(bigint, text, bigint, boolean, text[], bigint[], bytea[], text[], bigint[],
        text, bigint)""": "SELECT SCHEMA.change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    "change_one(bigint, text, bigint, text, bigint, bytea)": """
        SELECT SCHEMA.change_one($1, $2, $3, $4, $5, $6)""",
    "settle(text, bigint)": "SELECT SCHEMA.settle($1, $2)",
    "read_timeline(text)": """
        SELECT e.epoch, t.read_ts, t.write_ts
        FROM SCHEMA.epoch e LEFT JOIN SCHEMA.timelines t ON t.timeline = $1 WHERE e.one""",
    "allocate(bigint, text, bigint, bigint)": "SELECT SCHEMA.allocate($1, $2, $3, $4)",
    "apply(bigint, text, bigint)": "SELECT SCHEMA.apply($1, $2, $3)",
    "note(text, text)": "SELECT SCHEMA.note($1, $2)",
    "find_note(text)": "SELECT n.text FROM SCHEMA.notes n WHERE n.name = $1",
    **stash_sql.STATEMENTS,
}
