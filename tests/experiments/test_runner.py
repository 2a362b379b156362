"""Running: the same numbers however often it is interrupted and however many run beside it."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest

from hidldl import (
    SABFGS,
    HidLDL,
    IncomLDL,
    MeanFill,
    PTBayes,
    SelfTuned,
    hide_labels,
    make_distributions,
    register_method,
    reproduce,
    score,
)
from hidldl.base import Learner
from hidldl.experiments import protocol
from hidldl.experiments.protocol import Condition, Evaluation, Experiment, Method, register_dataset
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store


def small():
    return make_distributions(n_rows=60, n_features=3, n_labels=4, random_state=0)


def other():
    return make_distributions(n_rows=50, n_features=5, n_labels=3, random_state=1)


class Broken(Learner):
    """A learner that always fails."""

    def _fit(self, X, D, sample_weight):
        raise RuntimeError("broken on purpose")

    def _predict(self, X):
        raise AssertionError


METHODS = (
    Method.of("HidLDL", HidLDL(), (0.5, 2.0, 8.0)),
    Method.of("IncomLDL", IncomLDL(), (0.1, 1.0)),
    Method.of("MeanFill", MeanFill()),
    Method.of("PT-Bayes", PTBayes()),
)
NUMBERS = ["key", "status", "chebyshev", "clark", "canberra", "kl", "cosine", "intersection", "alpha", "iterations"]


def experiment(setting="recovery", methods=METHODS, repetitions=2):
    return Experiment("test", setting, ("small", "other"), (0.4, 0.6), methods, repetitions)


@pytest.fixture(autouse=True)
def _datasets(monkeypatch):
    monkeypatch.setattr(protocol, "_registered_datasets", {})
    monkeypatch.setattr(protocol, "_registered_methods", {})
    register_dataset("small", small)
    register_dataset("other", other)


def numbers(store):
    return store.results()[NUMBERS].sort_values("key", ignore_index=True)


class TestProtocol:
    def test_experiments_are_values(self):
        assert experiment() == experiment()
        assert hash(experiment()) == hash(experiment())
        assert len({evaluation.key for evaluation in experiment().evaluations()}) == 2 * 2 * 2 * 4

    def test_a_key_depends_on_all_that_decides_the_result_and_not_on_the_name(self):
        condition = Condition("recovery", "small", 0.5, 0)
        keys = [
            Evaluation(condition, Method.of("a", HidLDL(alpha=1.0))).key,
            Evaluation(condition, Method.of("a", HidLDL(alpha=2.0))).key,
            Evaluation(condition, Method.of("a", HidLDL(alpha=1.0), (1.0,))).key,
            Evaluation(condition, Method.of("a", MeanFill())).key,
            Evaluation(Condition("predictive", "small", 0.5, 0), Method.of("a", HidLDL(alpha=1.0))).key,
        ]
        assert len(set(keys)) == 5
        assert Evaluation(condition, Method.of("b", HidLDL(alpha=1.0))).key == keys[0]

    def test_seeds_depend_on_dataset_rate_and_repetition_only(self):
        seeds = {
            Condition("recovery", *rest).seed for rest in (("a", 0.5, 0), ("b", 0.5, 0), ("a", 0.6, 0), ("a", 0.5, 1))
        }
        assert len(seeds) == 4
        assert Condition("predictive", "a", 0.5, 0).seed in seeds


def test_the_oracle_picks_the_alpha_with_the_least_chebyshev(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    run([experiment(repetitions=1)], store)
    row = store.results().query("method == 'HidLDL' and dataset == 'small' and rate == 0.4").iloc[0]
    data = small()
    D_obs, observed = hide_labels(data.distributions, rate=0.4, random_state=int(row["seed"]))
    errors = {
        alpha: score(data.distributions, HidLDL(alpha).fit(data.features, D_obs, observed).raw_distributions_)
        for alpha in (0.5, 2.0, 8.0)
    }
    best = min(errors, key=lambda alpha: errors[alpha]["chebyshev"])
    assert row["alpha"] == best
    assert row["clark"] == pytest.approx(errors[best]["clark"], rel=1e-9)
    assert row["seconds"] > 0
    assert row["peak_memory_mb"] > 10
    assert '"numpy"' in row["versions"]


def test_prediction_is_sabfgs_on_recovered_training_rows(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    run([experiment("predictive", methods=METHODS[2:3], repetitions=1)], store)
    row = store.results().query("dataset == 'other' and rate == 0.6").iloc[0]
    data, seed = other(), int(row["seed"])
    D_obs, observed = hide_labels(data.distributions, rate=0.6, random_state=seed)
    order = np.random.default_rng(seed).permutation(50)
    test, train = order[:10], order[10:]
    recovered = MeanFill().fit(data.features[train], D_obs[train], observed[train]).distributions_
    predicted = SABFGS(random_state=seed).fit(data.features[train], recovered).predict(data.features[test])
    assert row["chebyshev"] == pytest.approx(score(data.distributions[test], predicted)["chebyshev"], rel=1e-6)


def test_one_worker_or_many_cold_or_resumed_give_the_same_numbers(tmp_path):
    alone, together, resumed = (Store(tmp_path / f"{name}.sqlite") for name in ("alone", "together", "resumed"))
    assert run([experiment()], alone) == 32
    assert run([experiment()], together, n_jobs=2) == 32
    assert run([experiment(repetitions=1)], resumed) == 16
    assert run([experiment()], resumed) == 16
    assert run([experiment()], resumed) == 0
    for store in (together, resumed):
        pd.testing.assert_frame_equal(numbers(store), numbers(alone), check_exact=True)


def test_adding_a_method_changes_no_other_result(tmp_path):
    few, many = Store(tmp_path / "few.sqlite"), Store(tmp_path / "many.sqlite")
    run([experiment(methods=METHODS[3:])], few)
    run([experiment()], many)
    kept = numbers(many)[lambda frame: frame["key"].isin(numbers(few)["key"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, numbers(few), check_exact=True)


def test_a_failing_method_is_a_row_with_its_traceback_and_can_be_tried_again(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    broken = experiment(methods=(Method.of("Broken", Broken()), METHODS[2]), repetitions=1)
    run([broken], store)
    results = store.results()
    assert set(results.query("method == 'MeanFill'")["status"]) == {"done"}
    failed = results.query("method == 'Broken'")
    assert set(failed["status"]) == {"failed"}
    assert failed["traceback"].str.contains("broken on purpose").all()
    assert run([broken], store) == 0
    assert run([broken], store, retry_failed=True) == len(failed)


def test_a_method_that_holds_another_runs_too(tmp_path):
    tuned = SelfTuned(IncomLDL(), {"alpha": [1e-3, 1e-1]}, n_draws=1)
    experiment = Experiment("nested", "recovery", ("small",), (0.5,), (Method.of("tuned", tuned),), 1)
    store = Store(tmp_path / "store.sqlite")
    run([experiment], store)
    assert list(store.results()["status"]) == ["done"]


def test_results_of_some_experiments(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    run([experiment(), experiment("predictive", repetitions=1)], store)
    assert len(store.results()) == 48
    assert set(store.results([experiment()])["setting"]) == {"recovery"}


SCRIPT = textwrap.dedent(
    """
    import sys
    sys.path.insert(0, sys.argv[2])
    import test_runner as t
    from hidldl.experiments.protocol import register_dataset
    from hidldl.experiments.runner import run
    from hidldl.experiments.store import Store
    register_dataset("small", t.small)
    register_dataset("other", t.other)
    run([t.experiment()], Store(sys.argv[1]), n_jobs=int(sys.argv[3]))
    """
)


def start(path, n_jobs=1):
    here = os.path.dirname(__file__)  # noqa: PTH120
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), here, str(n_jobs)], start_new_session=True)


def test_a_run_that_is_killed_twenty_times_ends_with_the_same_rows(tmp_path):
    """kill -9 at random moments: nothing half-written is read, nothing that finished is run again."""
    undisturbed = Store(tmp_path / "undisturbed.sqlite")
    run([experiment()], undisturbed)
    path = tmp_path / "killed.sqlite"
    rng = np.random.default_rng(0)
    kills, finished = 0, False
    while not finished:
        process = start(path)
        if kills < 20:
            # Start-up takes about a second; the evaluations follow within the next.
            time.sleep(rng.uniform(0.6, 1.6))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            if path.exists():
                rows = numbers(Store(path))
                known = numbers(undisturbed)[lambda frame, keys=rows["key"]: frame["key"].isin(keys)]
                assert rows.fillna(-1).to_dict() == known.reset_index(drop=True).fillna(-1).to_dict()
        else:
            finished = process.wait() == 0
    pd.testing.assert_frame_equal(numbers(Store(path)), numbers(undisturbed), check_exact=True)


def test_two_runs_on_one_store_do_not_harm_it(tmp_path):
    path = tmp_path / "shared.sqlite"
    processes = [start(path), start(path)]
    assert [process.wait() for process in processes] == [0, 0]
    undisturbed = Store(tmp_path / "undisturbed.sqlite")
    run([experiment()], undisturbed)
    pd.testing.assert_frame_equal(numbers(Store(path)), numbers(undisturbed), check_exact=True)


def test_what_users_register_appears_in_every_comparison(tmp_path, monkeypatch):
    monkeypatch.delenv("HIDLDL_DATA", raising=False)
    register_method("Mine", MeanFill(max_iter=3))
    page = reproduce(tmp_path, tables=["1", "2"], figures=[], datasets=["small"], repetitions=1)
    table = pd.read_csv(tmp_path / "table-1.csv")
    assert set(table["dataset"]) == {"small"}
    assert "Mine" in set(table["method"])
    assert not (tmp_path / "table-2.csv").exists()
    assert "Mine" in page.read_text(encoding="utf-8")
