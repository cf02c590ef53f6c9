-- Everything is a function of one statement, so that each step is one transaction and one round trip.
-- Steps on one key exclude each other by a lock of the transaction; what follows it sees what others have committed.
-- A change of this file needs a new name for the table at its end.
BEGIN;
CREATE SCHEMA IF NOT EXISTS toctou;
CREATE SEQUENCE IF NOT EXISTS toctou.fences;
CREATE SEQUENCE IF NOT EXISTS toctou.versions;
CREATE TABLE IF NOT EXISTS toctou.permits (id bigint PRIMARY KEY, caller bytea NOT NULL, owner bigint NOT NULL);
CREATE INDEX IF NOT EXISTS permits_caller ON toctou.permits (caller);
CREATE TABLE IF NOT EXISTS toctou.rates (key bytea PRIMARY KEY, full_at bigint NOT NULL);
CREATE INDEX IF NOT EXISTS rates_over ON toctou.rates (full_at);
CREATE TABLE IF NOT EXISTS toctou.cells (key bytea PRIMARY KEY, value bytea, version bigint, fence bigint);
CREATE TABLE IF NOT EXISTS toctou.records (key bytea PRIMARY KEY, arguments bytea NOT NULL, state text NOT NULL,
  owner bigint NOT NULL, ticket bigint NOT NULL, keep bigint NOT NULL, until bigint, result bytea);
CREATE INDEX IF NOT EXISTS records_over ON toctou.records (until);

CREATE OR REPLACE FUNCTION toctou.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE OR REPLACE FUNCTION toctou.enter_key(key bytea) RETURNS void LANGUAGE sql VOLATILE AS
$$ SELECT pg_advisory_xact_lock(('x' || encode(substr(key, 1, 8), 'hex'))::bit(64)::bigint) $$;

-- Each session holds a number of its own exclusively, as long as it lives.
CREATE OR REPLACE FUNCTION toctou.is_dead(owner bigint) RETURNS boolean LANGUAGE sql VOLATILE AS
$$ SELECT pg_try_advisory_xact_lock_shared(owner) $$;

CREATE OR REPLACE FUNCTION toctou.unlock(gates bigint[], propers bigint[], exclusive boolean[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  FOR i IN 1 .. cardinality(gates) LOOP
    IF exclusive[i] THEN
      PERFORM pg_advisory_unlock(propers[i]);
      PERFORM pg_advisory_unlock(gates[i]);
    ELSE
      PERFORM pg_advisory_unlock_shared(propers[i]);
    END IF;
  END LOOP;
END $$;

-- Undoes a request that got so many locks, and perhaps the gate of the next.
CREATE OR REPLACE FUNCTION toctou.unlock_first(gates bigint[], propers bigint[], exclusive boolean[], taken int,
  at_gate boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF at_gate AND exclusive[taken + 1] THEN
    PERFORM pg_advisory_unlock(gates[taken + 1]);
  ELSIF at_gate THEN
    PERFORM pg_advisory_unlock_shared(gates[taken + 1]);
  END IF;
  PERFORM toctou.unlock(gates[1 : taken], propers[1 : taken], exclusive[1 : taken]);
END $$;

-- A writer holds gate and lock. A reader passes the gate and holds the lock: a writer that waits for readers lets no new
-- ones in.
CREATE OR REPLACE FUNCTION toctou.try_lock(gates bigint[], propers bigint[], exclusive boolean[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  taken int := 0;
  at_gate boolean := false;
BEGIN
  FOR i IN 1 .. cardinality(gates) LOOP
    IF exclusive[i] THEN
      at_gate := pg_try_advisory_lock(gates[i]);
      EXIT WHEN NOT at_gate OR NOT pg_try_advisory_lock(propers[i]);
    ELSE
      at_gate := pg_try_advisory_lock_shared(gates[i]);
      EXIT WHEN NOT at_gate OR NOT pg_try_advisory_lock_shared(propers[i]);
      PERFORM pg_advisory_unlock_shared(gates[i]);
    END IF;
    at_gate := false;
    taken := i;
  END LOOP;
  IF taken = cardinality(gates) THEN
    RETURN nextval('toctou.fences');
  END IF;
  PERFORM toctou.unlock_first(gates, propers, exclusive, taken, at_gate);
  RETURN NULL;
EXCEPTION WHEN OTHERS OR query_canceled THEN
  -- Locks of a session stay when a statement fails.
  PERFORM toctou.unlock_first(gates, propers, exclusive, taken, at_gate);
  RAISE;
END $$;

-- The same, but waits. For a session that does nothing else.
CREATE OR REPLACE FUNCTION toctou.lock(gates bigint[], propers bigint[], exclusive boolean[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  FOR i IN 1 .. cardinality(gates) LOOP
    IF exclusive[i] THEN
      PERFORM pg_advisory_lock(gates[i]);
      PERFORM pg_advisory_lock(propers[i]);
    ELSE
      PERFORM pg_advisory_lock_shared(gates[i]);
      PERFORM pg_advisory_lock_shared(propers[i]);
      PERFORM pg_advisory_unlock_shared(gates[i]);
    END IF;
  END LOOP;
  RETURN nextval('toctou.fences');
END $$;

CREATE OR REPLACE FUNCTION toctou.permit(a_caller bytea, a_limit bigint, me bigint, a_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM toctou.enter_key(a_caller);
  IF (SELECT count(*) FROM toctou.permits WHERE caller = a_caller) >= a_limit THEN
    DELETE FROM toctou.permits WHERE caller = a_caller AND owner <> me AND toctou.is_dead(owner);
    IF (SELECT count(*) FROM toctou.permits WHERE caller = a_caller) >= a_limit THEN
      RETURN false;
    END IF;
  END IF;
  INSERT INTO toctou.permits VALUES (a_id, a_caller, me);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION toctou.take(a_key bytea, a_window bigint, cost bigint, OUT allowed boolean, OUT rest bigint)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  moment bigint;
  next bigint;
BEGIN
  PERFORM toctou.enter_key(a_key);
  moment := toctou.now_us();
  SELECT full_at INTO next FROM toctou.rates WHERE key = a_key;
  next := least(greatest(coalesce(next, moment), moment), moment + a_window) + cost;
  allowed := next <= moment + a_window;
  IF allowed THEN
    INSERT INTO toctou.rates VALUES (a_key, next) ON CONFLICT (key) DO UPDATE SET full_at = excluded.full_at;
    rest := moment + a_window - next;
  ELSE
    rest := next - moment - a_window;
  END IF;
END $$;

-- Returns done and the new version, or not done and what was found.
CREATE OR REPLACE FUNCTION toctou.swap(a_key bytea, expected bigint, a_value bytea,
  OUT done boolean, OUT a_version bigint, OUT a_found bytea) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM toctou.enter_key(a_key);
  SELECT version, value INTO a_version, a_found FROM toctou.cells WHERE key = a_key;
  done := a_version IS NOT DISTINCT FROM expected;
  IF NOT done THEN RETURN; END IF;
  a_version := NULL;
  IF a_value IS NULL THEN
    -- Its fence stays, or a late write would get through.
    UPDATE toctou.cells SET value = NULL, version = NULL WHERE key = a_key;
    DELETE FROM toctou.cells WHERE key = a_key AND fence IS NULL;
    RETURN;
  END IF;
  a_version := nextval('toctou.versions');
  INSERT INTO toctou.cells VALUES (a_key, a_value, a_version)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version;
END $$;

CREATE OR REPLACE FUNCTION toctou.write_fenced(a_key bytea, a_fence bigint, a_value bytea,
  OUT a_version bigint, OUT seen bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM toctou.enter_key(a_key);
  SELECT fence INTO seen FROM toctou.cells WHERE key = a_key;
  IF seen > a_fence THEN RETURN; END IF;
  a_version := nextval('toctou.versions');
  INSERT INTO toctou.cells VALUES (a_key, a_value, a_version, a_fence) ON CONFLICT (key) DO UPDATE
    SET value = excluded.value, version = excluded.version, fence = excluded.fence;
END $$;

CREATE OR REPLACE FUNCTION toctou.begin_record(a_key bytea, a_arguments bytea, me bigint, a_ticket bigint, a_keep bigint,
  OUT what text, OUT a_result bytea) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  row toctou.records;
BEGIN
  PERFORM toctou.enter_key(a_key);
  DELETE FROM toctou.records WHERE key = a_key AND until <= toctou.now_us();
  SELECT * INTO row FROM toctou.records WHERE key = a_key;
  IF row.key IS NULL THEN
    INSERT INTO toctou.records VALUES (a_key, a_arguments, 'running', me, a_ticket, a_keep);
    what := 'first';
  ELSIF row.arguments <> a_arguments THEN
    what := 'other';
  ELSIF row.state = 'running' AND row.owner <> me AND toctou.is_dead(row.owner) THEN
    UPDATE toctou.records SET state = 'unknown', until = toctou.now_us() + keep WHERE key = a_key;
    what := 'unknown';
  ELSE
    what := row.state;
    a_result := row.result;
  END IF;
END $$;

-- Ends the record of a ticket, or, without one, a record whose outcome is unknown.
CREATE OR REPLACE FUNCTION toctou.end_record(a_key bytea, a_ticket bigint, me bigint, outcome text, a_result bytea)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  row toctou.records;
BEGIN
  PERFORM toctou.enter_key(a_key);
  SELECT * INTO row FROM toctou.records WHERE key = a_key;
  IF row.key IS NULL THEN RETURN false; END IF;
  IF a_ticket IS NULL THEN
    IF row.state <> 'unknown' AND NOT (row.state = 'running' AND row.owner <> me AND toctou.is_dead(row.owner)) THEN
      RETURN false;
    END IF;
  ELSIF row.ticket <> a_ticket THEN
    RETURN false;
  END IF;
  IF outcome = 'not run' THEN
    DELETE FROM toctou.records WHERE key = a_key;
  ELSE
    UPDATE toctou.records SET state = outcome, result = a_result, until = toctou.now_us() + keep WHERE key = a_key;
  END IF;
  RETURN true;
END $$;

-- Deletes what is over.
CREATE OR REPLACE FUNCTION toctou.sweep(me bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
  DELETE FROM toctou.rates WHERE full_at <= toctou.now_us();
  DELETE FROM toctou.records WHERE until <= toctou.now_us();
  DELETE FROM toctou.permits WHERE owner IN
    (SELECT owner FROM (SELECT DISTINCT owner FROM toctou.permits WHERE owner <> me) AS owners WHERE toctou.is_dead(owner));
$$;

-- Says that all of this is there. It is not made again, because that would lock tables that are in use.
CREATE TABLE IF NOT EXISTS toctou.version_1 ();
COMMIT;
