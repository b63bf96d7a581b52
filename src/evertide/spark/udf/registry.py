"""Makes Python functions known to a Spark session, each once."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from evertide.spark.udf.register import PythonFunction

# Functions that a session keeps; one-shot queries bring new ones for as long as it lives.
KEPT_FUNCTIONS = 500


class FunctionRegistry:
    """The Python functions that one session knows. Any thread may ask."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._known: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def register(self, functions: Iterable[PythonFunction]) -> None:
        """Make texts that call these runnable; what was not used for longest is forgotten."""
        with self._lock:
            for function in functions:
                if function.name not in self._known:
                    self._session.udf.register(function.name, _spark_function(function))
                self._known[function.name] = None
                self._known.move_to_end(function.name)
            while len(self._known) > KEPT_FUNCTIONS:
                oldest, _ = self._known.popitem(last=False)
                # The name is a digest of ours: nothing a user wrote.
                self._session.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {oldest}")


def _spark_function(function: PythonFunction) -> Any:
    def run(*arrays: pa.Array) -> pa.Array:
        return function(*arrays)

    # Its stubs ask for the kind of function, which Spark itself reads from the annotations above.
    make: Any = arrow_udf
    registered = make(run, function.returns)
    return registered if function.deterministic else registered.asNondeterministic()
