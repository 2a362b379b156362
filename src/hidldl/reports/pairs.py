"""Which labels are hidden together: the picture, and a text that names what is strongest in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from hidldl.arrays import FloatArray, IntArray
from hidldl.reports.summary import Summary

MOST_IN_HEAT_MAP = 30
MOST_PAIRS = 30


@dataclass(frozen=True)
class Remark:
    """A pair that the text names: its position, whether it is clear, and how many more pairs of its sign are."""

    position: int
    is_clear: bool
    n_more: int


def hidden_together(summary: Summary, labels: Sequence[str]) -> dict[str, Any] | None:
    """A heat map of correlations or, for many labels, the strongest pairs; None where nothing can correlate."""
    phi = summary.overlooked_together
    varying = np.flatnonzero(~np.isnan(phi.diagonal()))
    if len(varying) < 3:
        return None
    fits = len(varying) <= MOST_IN_HEAT_MAP
    first, second = (varying[side] for side in np.triu_indices(len(varying), 1))
    together = phi[first, second]
    n_without = summary.reannotation.n_without_labels
    both_hidden = summary.both_hidden[first, second] - n_without
    remarks = remarks_on(together, both_hidden, summary.n_rows - n_without)

    def pair(k: int) -> dict[str, Any]:
        return {
            "first": labels[first[k]],
            "second": labels[second[k]],
            "count": int(both_hidden[k]),
            "phi": _signed(together[k]),
            "up": bool(together[k] > 0),
            "width": 100 * abs(float(together[k])),
        }

    shades = max(0.5, float(np.abs(together).max()))
    return {
        "remarks": [pair(r.position) | {"is_clear": r.is_clear, "n_more": r.n_more} for r in remarks],
        "pairs": [] if fits else [pair(k) for k in _strongest(together, [r.position for r in remarks])],
        "names": [labels[int(j)] for j in varying],
        "left_out": len(labels) - len(varying),
        "cells": [[_cell(phi[i, j], shades) if i != j else None for j in varying] for i in varying] if fits else [],
        "numbers_fit": len(varying) <= 14,
    }


def remarks_on(together: FloatArray, both_hidden: IntArray, n_rows: int) -> list[Remark]:
    """The strongest correlation, clear or not, and the strongest of the other sign if that is clear.

    A reader's eye goes to the strongest colour of the picture, so the text never passes over it.
    """
    # One in a hundred tables of independent labels would have a clear pair: Bonferroni over all pairs and both signs.
    limit = -float(ndtri(0.005 / len(together))) / np.sqrt(n_rows)
    clear = (np.abs(together) > limit) & ((together < 0) | (both_hidden > 1))
    strongest = int(np.abs(together).argmax())
    is_up = together > 0
    n_alike = int((clear & (is_up == is_up[strongest])).sum())
    remarks = [Remark(strongest, bool(clear[strongest]), n_alike - int(clear[strongest]))]
    others = np.flatnonzero(clear & (is_up != is_up[strongest]))
    if len(others):
        remarks.append(Remark(int(others[np.abs(together[others]).argmax()]), True, len(others) - 1))
    return remarks


def _strongest(together: FloatArray, in_text: list[int]) -> IntArray:
    """The pairs furthest from independent; those that the text names are always among them."""
    order = np.argsort(-np.abs(together), kind="stable")
    is_in = np.isin(order, in_text)
    is_in[:MOST_PAIRS] = True
    return order[is_in]


def _cell(phi: float, shades: float) -> dict[str, Any]:
    return {"phi": _signed(phi), "up": bool(phi > 0), "shade": round(100 * min(1.0, abs(float(phi)) / shades))}


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−").replace("+0.00", "0.00").replace("−0.00", "0.00")
