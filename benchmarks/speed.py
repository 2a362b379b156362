"""How long a fit takes on each of the paper's datasets, and what importing the package costs beyond NumPy.

    HIDLDL_DATA=folder python benchmarks/speed.py

Times are the best of three in this run on this machine; compare rows with each other, not with other machines.
"""

import subprocess
import sys
import warnings
from time import perf_counter

from convergence import DATASETS

from hidldl import HidLDL, MeanFill, hide_labels, load_dataset
from hidldl.graph import nearest_neighbors, weighted_graph


def seconds(work: object) -> float:
    """The best of three."""
    best = float("inf")
    for _ in range(3):
        started = perf_counter()
        work()  # type: ignore[operator]
        best = min(best, perf_counter() - started)
    return best


def import_seconds(statement: str) -> float:
    """Start of an interpreter that runs ``statement``."""
    return seconds(lambda: subprocess.run([sys.executable, "-c", statement], check=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    beyond = import_seconds("import numpy, hidldl") - import_seconds("import numpy")
    print(f"import hidldl beyond numpy: {beyond:.3f} s\n")
    print("| dataset | graph, s | whole HidLDL fit, s | MeanFill fit, s |\n| --- | --- | --- | --- |")
    for name in DATASETS:
        data = load_dataset(name)
        X, D = data.features, data.distributions
        D_obs, observed = hide_labels(D, rate=0.5, random_state=0)
        graph = seconds(lambda X=X, D=D: weighted_graph(nearest_neighbors(X, D.shape[1]), 1.0))
        fit, fill = (
            seconds(lambda m=m, X=X, D_obs=D_obs, observed=observed: m.fit(X, D_obs, observed=observed))
            for m in (HidLDL(), MeanFill())
        )
        print(f"| {name} | {graph:.3f} | {fit:.3f} | {fill:.3f} |", flush=True)
