"""The setting in which nobody knows the mask: every method with the true one, with none and with an inferred one."""

from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from hidldl import SABFGS, BayesHidLDL, Dataset, MeanFill
from hidldl.experiments.paper import PAPER_TABLES, TABLES
from hidldl.experiments.protocol import Contender, Experiment
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.recovery import inferring

GIVEN = {"ridge": 3.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}
BAYES = BayesHidLDL(nu=8.0, **GIVEN, hiding="uniform")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    shares = softmax(2 * X @ rng.standard_normal((2, 4)) + 0.5 * rng.standard_normal((200, 4)), axis=1)
    # Ten votes per row, so that small shares come out as true zeros.
    D = np.array([rng.multinomial(10, p) for p in shares]) / 10
    data = Dataset("votes", X, D, ("x", "y"), tuple("abcd"))
    methods = (Contender.of("MeanFill", MeanFill()), Contender.of("Bayes", BAYES))
    contenders = tuple(one for method in methods for one in method.for_setting("unaware"))
    experiment = Experiment("unaware", "unaware", (data.name,), (0.4,), contenders, 1)
    store = Store(tmp_path_factory.mktemp("store") / "results.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inferring, "BayesHidLDL", partial(BayesHidLDL, **GIVEN | {"ridge": 0.3}))
        run([experiment], store, data=data)
    return store.results([experiment])


def test_every_method_has_three_rows(results):
    assert set(results["method"]) == {
        f"{method}{mask}" for method in ("MeanFill", "Bayes") for mask in ("", ", zeros hidden", ", mask inferred")
    }
    assert (results["status"] == "done").all(), results["traceback"].dropna().to_list()


def test_an_inferred_mask_is_better_than_none(results):
    errors = results.groupby("method")["chebyshev"].mean()
    for method in ("MeanFill", "Bayes"):
        assert errors[f"{method}, mask inferred"] < 0.9 * errors[f"{method}, zeros hidden"]
    assert errors["Bayes"] < errors["Bayes, mask inferred"]


def test_learners_take_part_once():
    assert len(Contender.of("SA-BFGS", SABFGS()).for_setting("unaware")) == 1
    assert len(Contender.of("MeanFill", MeanFill()).for_setting("recovery")) == 1


def test_the_table_is_there_and_not_among_the_papers():
    (experiment,) = TABLES["U"].experiments(1, ("SJAFFE",))
    titles = [contender.title for contender in experiment.contenders]
    assert "U" not in PAPER_TABLES and "HidLDL, mask inferred" in titles
    assert len(np.unique(titles)) == len(titles)
