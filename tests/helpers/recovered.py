"""Summaries of recovered tables, for tests of what is shown of them."""

import numpy as np

from hidldl.reports.recovery_page import Facts
from hidldl.reports.summary import Summarizer
from hidldl.selection import Selection

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"double\" and 'single' & &amp;",
    "control\x00\x07\x1b\x85",
    "שלום\u202eעולם",
    "half a character \ud800",
    "n" * 300,
    "{{ 7 * 7 }} {% raw %}",
)


def a_summary(
    n_rows,
    label_names,
    *,
    rate=0.4,
    names=None,
    bounds=True,
    seed=0,
    together=False,
    groups=None,
    without=(),
    kinds=None,
    **options,
):
    rng = np.random.default_rng(seed)
    m = len(label_names)
    D = rng.dirichlet(np.ones(m), size=n_rows)
    lots = rng.random((n_rows, m))
    if together:
        lots[:, 1] = lots[:, 0]
    observed = lots >= rate
    observed[np.arange(n_rows), D.argmax(axis=1)] = True
    observed[list(without)] = False
    handed_in = np.where(observed, D, 0)
    handed_in /= np.maximum(handed_in.sum(axis=1, keepdims=True), 1e-12)
    summarizer = Summarizer(label_names, **options)
    names = names or [f"row {i + 1}" for i in range(n_rows)]
    low, high = (D * 0.8, D * 1.1) if bounds else (None, None)
    summarizer.add(names, np.where(observed, handed_in, np.nan), observed, D, low, high, groups, kinds)
    return summarizer.finish()


def some_facts(**more):
    return Facts("table.csv", "HidLDL", {"alpha": 4.0}, 1.5, "hidldl recover table.csv --report report.html", **more)


def a_selection():
    candidates = [{"alpha": alpha, "scale": scale} for alpha in (1.0, 4.0, 16.0) for scale in (False, True)]
    losses = np.random.default_rng(0).random((6, 50)) + np.arange(6)[:, None] / 10
    return Selection.of(candidates, losses, 2, "kl", np.random.default_rng(0))
