"""What "observed" means, in one place.

Each share is observed, hidden, or unknown: a zero of which nobody knows whether the label was overlooked or is truly
absent. The mask ``observed`` says which: True, False, and NaN (or None, or NA) for unknown. Without a mask NaN in
``D_obs`` is hidden, and ``zeros`` says what a zero is:

- "hidden": a label that was overlooked;
- "true": an annotated zero, which is observed;
- "unknown": either; methods that can tell weigh the two;
- "auto", the default: true in a table with NaN, since it has another sign for what is hidden. In a table without,
  unknown where the method can tell, and else hidden.
"""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from hidldl.arrays import BoolArray, FloatArray, in_memory
from hidldl.errors import warn_user
from hidldl.refusals import fault_at, refuse_misaligned

Zeros: TypeAlias = Literal["auto", "unknown", "hidden", "true"]
NUMBERS = ("integer", "floating", "mixed-integer-float")
MEANINGS_OF_ZERO: tuple[Zeros, ...] = ("auto", "unknown", "hidden", "true")
ZEROS_ARE_HIDDEN = (
    "has zeros and neither NaN nor a mask: every zero is taken as hidden. Pass observed= to say which entries were "
    "annotated; a true zero is an observed entry. infer_observed tells them apart."
)


class Mask(NamedTuple):
    """Which shares are observed, and of which nobody knows; the rest is hidden."""

    observed: BoolArray
    unknown: BoolArray


def resolve_mask(
    shares: FloatArray, observed: Any, frame: pd.DataFrame | None, *, name: str, zeros: Zeros, can_tell: bool
) -> Mask:
    """The mask of ``D_obs`` by the rules above; ``can_tell`` if the method weighs unknown zeros."""
    is_nan, is_zero = np.isnan(shares), shares == 0
    if observed is not None:
        mask, doubt = _three_values(observed, shares.shape, frame, name)
        if (mask & is_nan).any():
            remedy = "set observed to False there, or give the share"
            raise fault_at(mask & is_nan, frame, name, "is NaN but observed is True", remedy)
        # A positive share was seen, whatever the mask says; a NaN was not.
        return Mask(mask | (doubt & ~is_nan & ~is_zero), doubt & is_zero)
    if zeros == "auto":
        zeros = "true" if is_nan.any() else "unknown" if can_tell else "hidden"
        if zeros == "hidden" and is_zero.any():
            warn_user(f"{name} {ZEROS_ARE_HIDDEN}")
    seen = ~is_nan & ~(is_zero & (zeros != "true"))
    return Mask(seen, is_zero & (zeros == "unknown"))


def check_mask(observed: Any, shape: tuple[int, ...], frame: pd.DataFrame | None = None, *, name: str) -> BoolArray:
    """A boolean n × m mask, True where the annotator gave a share, for the matrix ``name`` (which is ``frame``)."""
    mask, unknown = _three_values(observed, shape, frame, name)
    if unknown.any():
        remedy = "say whether the share is observed, True or False"
        raise fault_at(unknown, frame, "observed", "is unknown", remedy)
    return mask


def _three_values(observed: Any, shape: tuple[int, ...], frame: pd.DataFrame | None, name: str) -> Mask:
    """True, and neither True nor False."""
    values = np.asarray(in_memory(observed))
    unknown = np.zeros(values.shape, dtype=bool)
    if values.dtype.kind in "Of":
        unknown = np.asarray(pd.isna(values))
        kind = infer_dtype(values[~unknown], skipna=False)
        # Numbers are flags only beside NaN, which makes numbers of them.
        is_number = unknown.any() and kind in NUMBERS and bool(np.isin(values[~unknown], (0, 1)).all())
        if kind in ("boolean", "empty") or is_number:
            values = np.where(unknown, False, values).astype(bool)
    if values.dtype != np.bool_:
        raise ValueError(
            f"observed must be a boolean array (True where a share is observed, NaN where nobody knows), got dtype "
            f"{values.dtype}; convert it with observed.astype(bool) if 1 means observed."
        )
    if values.shape != shape:
        raise ValueError(f"observed has shape {values.shape} but {name} has {shape}; give one mask entry per share.")
    if isinstance(observed, pd.DataFrame) and frame is not None:
        columns, rows = f"observed[{name}.columns]", f"observed.loc[{name}.index]"
        refuse_misaligned(frame.columns, observed.columns, name, "observed", columns, "labels")
        refuse_misaligned(frame.index, observed.index, name, "observed", rows, "rows")
    return Mask(values, unknown)
