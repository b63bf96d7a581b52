"""Values fixed when a statement starts: their names and types.

They become SessionCalls in the tree, which the adapter replaces by literals.
"""

from typing import Final

from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    INT4,
    INTERVAL,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
    array_of,
)

SESSION_CALLS: Final[dict[str, SqlType]] = {
    "now": TIMESTAMPTZ,
    "current_timestamp": TIMESTAMPTZ,
    "transaction_timestamp": TIMESTAMPTZ,
    "statement_timestamp": TIMESTAMPTZ,
    "pg_postmaster_start_time": TIMESTAMPTZ,
    "localtimestamp": TIMESTAMP,
    "localtime": TIME,
    "current_date": DATE,
    "mz_now": MZ_TIMESTAMP,
    "mz_uptime": INTERVAL,
    "user": TEXT,
    "current_user": TEXT,
    "session_user": TEXT,
    "current_role": TEXT,
    "current_database": TEXT,
    "current_catalog": TEXT,
    "current_schema": TEXT,
    "version": TEXT,
    "mz_version": TEXT,
    "mz_version_num": INT4,
    "mz_environment_id": TEXT,
    "mz_legacy_installation_id": UUID,
    "mz_is_superuser": BOOL,
    "pg_backend_pid": INT4,
    # A call's argument is part of its name, because it must be a constant.
    "current_schemas(true)": array_of(TEXT),
    "current_schemas(false)": array_of(TEXT),
}
