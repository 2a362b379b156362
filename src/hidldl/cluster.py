"""Whether a table is on a cluster: in a collection of Dask, which is an extra, ``dask``."""

from typing import Any


def is_dask(*values: Any) -> bool:
    """Whether any of these is a collection of Dask; Dask need not be there to tell."""
    return any(type(value).__module__.partition(".")[0] in ("dask", "dask_expr") for value in values)
