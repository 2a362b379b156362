"""The paper's comparison on a complete dataset of one's own."""

import hashlib
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hidldl.datasets.dataset import Dataset
from hidldl.experiments.paper import METHODS, OURS
from hidldl.experiments.protocol import Experiment, Setting, registered_contenders
from hidldl.experiments.reproduce import provenance
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.metrics import MEASURES
from hidldl.progress import Progress, silent
from hidldl.refusals import row_name
from hidldl.replacing import write_text
from hidldl.reports.comparison import Comparison, comparison_of, to_csv, to_latex, to_markdown
from hidldl.reports.page import Section, check_report_extra, render_page
from hidldl.validation import check_choice, check_distributions


@dataclass(frozen=True)
class ComparisonFiles:
    """What ``compare`` found and wrote.

    ``comparisons`` holds a ``Comparison`` for each measure, with ``means`` and ``stds`` as DataFrames; ``results`` has
    a row per method and repetition; ``page`` is the path of the page.
    """

    comparisons: dict[str, Comparison]
    results: pd.DataFrame
    page: Path


def compare(
    data: Dataset,
    output: str | Path,
    *,
    rate: float = 0.5,
    setting: Setting = "recovery",
    measure: str = "chebyshev",
    repetitions: int = 5,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress = silent,
    command: str = "hidldl.compare(...)",
) -> ComparisonFiles:
    """Hide labels of a complete dataset, compare how well each method recovers them, and write what comes out.

    Every method sees the same masks: those of the paper, ``MeanFill``, ``BayesHidLDL`` and what users registered. The
    folder gets ``comparison.md``, ``.tex`` and ``.csv`` with one measure, and a page, ``index.html``, with all of them.
    Results are kept in ``results.sqlite`` there: an interrupted run goes on where it stopped.

    Parameters
    ----------
    data : Dataset
        Features and complete distributions, which are the ground truth.
    output : path
        The folder to write to.
    rate : float, default=0.5
        Share of labels to hide.
    setting : {"recovery", "predictive", "unaware"}
        Compare recovered rows, or predictions for new rows after recovery. "unaware" compares recovered rows with the
        mask known, with every zero taken for hidden, and with the mask inferred: nobody knows it of a real table.
    measure : str, default="chebyshev"
        The measure of the files, one of ``MEASURES``.
    repetitions : int, default=5
        Masks.
    n_jobs : int, default=1
        Processes. The numbers do not depend on it.
    executor : concurrent.futures.Executor, optional
        Where to run instead: the machines of a cluster, such as Dask's ``client.get_executor()`` or mpi4py's
        ``MPIPoolExecutor``. They need this package, and the data where it is loaded by name.
    progress : callable, optional
        Called with how many evaluations are done, of how many, and the last one in words.
    command : str
        What the page names as the way it was made.

    Returns
    -------
    ComparisonFiles
        The comparisons by measure, all results, and the path of the page.

    Examples
    --------
    >>> from hidldl import compare, load_table
    >>> result = compare(load_table("mine.csv", labels="label_*"), "comparison")  # doctest: +SKIP
    >>> result.comparisons["chebyshev"].means  # doctest: +SKIP
    """
    check_report_extra()
    check_choice(setting, "setting", ("recovery", "predictive", "unaware"))
    check_choice(measure, "measure", tuple(MEASURES))
    _check_complete(data)
    folder = Path(output)
    # Results belong to the content: a dataset that changed is another one.
    name = f"{data.name} {_digest(data)}"
    contenders = tuple(chain.from_iterable(each.for_setting(setting) for each in (*METHODS, *registered_contenders())))
    experiment = Experiment("compare", setting, (name,), (rate,), contenders, repetitions)
    store = Store(folder / "results.sqlite")
    run([experiment], store, n_jobs=n_jobs, executor=executor, data=data, progress=progress)
    results = store.results([experiment])
    comparisons = {
        shown: comparison_of(
            results,
            shown,
            title=f"{data.name}: {shown}, {setting}, {rate:.0%} hidden",
            ours=OURS,
            datasets=(name,),
            methods=tuple(contender.title for contender in contenders),
        )
        # The divergence is infinite as soon as a method rules out a label that is there.
        for shown in MEASURES
        if shown == measure or np.isfinite(results[shown].dropna()).all()
    }
    for ending, write in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
        write_text(folder / f"comparison.{ending}", write(comparisons[measure]) + "\n")
    page = folder / "index.html"
    write_text(page, _page(data.name, comparisons, results, command))
    return ComparisonFiles(comparisons, results, page)


def _check_complete(data: Dataset) -> None:
    """Rows are counted from 1, as in the file that most datasets come from."""
    for kind, values, names in (
        ("label", data.distributions, data.label_names),
        ("feature", data.features, data.feature_names),
    ):
        empty = ~np.isfinite(_numbers(values))
        if empty.any():
            i, j = np.argwhere(empty)[0]
            frame = values if isinstance(values, pd.DataFrame) else None
            place = f"{row_name(frame, int(i), 1)}, column {names[j]!r}"
            raise ValueError(f"{data.name} has empty cells in its {kind} columns, first in {place}; fill them first.")
    check_distributions(data.distributions, name=data.name, first_row=1)


def _digest(data: Dataset) -> str:
    parts = (np.ascontiguousarray(_numbers(part)) for part in (data.features, data.distributions))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:8]


def _numbers(part: Any) -> Any:
    return np.asarray(part, dtype=float)


def _page(name: str, comparisons: dict[str, Comparison], results: pd.DataFrame, command: str) -> str:
    return render_page(
        f"Methods compared on {name}",
        "Means and standard deviations over repetitions; the best is bold, the second underlined. A dot • (◦) means "
        f"that {OURS} is significantly better (worse) in a single-tailed paired t-test at 0.05. The alpha of {OURS} "
        "and IncomLDL is the oracle's: the one whose rows are nearest to the ground truth.",
        [Section(comparison.title, comparison) for comparison in comparisons.values()],
        command,
        provenance(results),
    )
