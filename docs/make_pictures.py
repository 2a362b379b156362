"""Draw the picture that the README and the site open with: ``python docs/make_pictures.py``.

The row is real: a word of the VADER lexicon, rated by ten people, with labels hidden at random among all other
words, and recovered by HidLDL with its default parameters.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hidldl import HidLDL, hide_labels, load_dataset
from hidldl.reports.figures import problem_figure

WORD = "controversial"


def main() -> None:
    data = load_dataset("VADER")
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = HidLDL().fit(data.features, D_obs, observed=observed)
    i = list(data.features.index).index(WORD)
    true, seen, recovered = (np.asarray(part)[i] for part in (data.distributions, observed, model.distributions_))
    title = f"How ten people rated the word “{WORD}”, from −4 to +4"
    folder = Path(__file__).parent / "images"
    folder.mkdir(exist_ok=True)
    problem_figure(true, seen, recovered, data.label_names, title).savefig(folder / "problem.png", dpi=130)


if __name__ == "__main__":
    main()
