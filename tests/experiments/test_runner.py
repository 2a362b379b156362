"""Running: the same numbers however often it is interrupted and however many run beside it."""

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from hidldl import (
    SABFGS,
    BayesHidLDL,
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
from hidldl import methods as registry
from hidldl.experiments import protocol
from hidldl.experiments.code_version import code_version
from hidldl.experiments.protocol import Condition, Contender, Evaluation, Experiment, register_dataset
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.learner import Learner

pytestmark = pytest.mark.usefixtures("short_search")


def small():
    return make_distributions(n_rows=60, n_features=3, n_labels=4, random_state=0)


def other():
    return make_distributions(n_rows=50, n_features=5, n_labels=3, random_state=1)


def votes():
    data = make_distributions(n_rows=80, n_features=3, n_labels=5, random_state=2)
    rng = np.random.default_rng(0)
    return replace(data, distributions=np.array([rng.multinomial(6, row) / 6 for row in data.distributions]))


class Broken(Learner):
    """A learner that always fails."""

    def _fit(self, X, D, sample_weight):
        raise RuntimeError("broken on purpose")

    def _predict(self, X):
        raise AssertionError


METHODS = (
    Contender.of("HidLDL", HidLDL(), (0.5, 2.0, 8.0)),
    Contender.of("IncomLDL", IncomLDL(), (0.1, 1.0)),
    Contender.of("MeanFill", MeanFill()),
    Contender.of("PT-Bayes", PTBayes()),
)
NUMBERS = ["key", "status", "chebyshev", "clark", "canberra", "kl", "cosine", "intersection", "alpha", "iterations"]


def experiment(setting="recovery", methods=METHODS, repetitions=2):
    return Experiment("test", setting, ("small", "other"), (0.4, 0.6), methods, repetitions)


@pytest.fixture(autouse=True)
def _datasets(monkeypatch):
    monkeypatch.setattr(protocol, "_registered_datasets", {})
    monkeypatch.setattr(registry, "_registered", {})
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
            Evaluation(condition, Contender.of("a", HidLDL(alpha=1.0))).key,
            Evaluation(condition, Contender.of("a", HidLDL(alpha=2.0))).key,
            Evaluation(condition, Contender.of("a", HidLDL(alpha=1.0), (1.0,))).key,
            Evaluation(condition, Contender.of("a", MeanFill())).key,
            Evaluation(Condition("predictive", "small", 0.5, 0), Contender.of("a", HidLDL(alpha=1.0))).key,
        ]
        assert len(set(keys)) == 5
        assert Evaluation(condition, Contender.of("b", HidLDL(alpha=1.0))).key == keys[0]

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


class AnotherMachine(Executor):
    """Runs what it is given as another machine would: from bytes, and its result comes back as bytes."""

    def submit(self, task, /, *arguments):
        task, arguments = self._sent((task, arguments))
        future = Future()
        future.set_result(self._sent(task(*arguments)))
        return future

    @staticmethod
    def _sent(part):
        return pickle.loads(pickle.dumps(part))  # noqa: S301


@pytest.mark.parametrize("executor", [AnotherMachine(), ThreadPoolExecutor(3)])
def test_an_executor_gives_the_same_numbers_and_leaves_warnings_as_they_are(tmp_path, executor):
    alone, elsewhere = Store(tmp_path / "alone.sqlite"), Store(tmp_path / "elsewhere.sqlite")
    filters = list(warnings.filters)
    said = []
    assert run([experiment()], alone) == 32
    with executor:
        assert run([experiment()], elsewhere, executor=executor, progress=lambda done, *_: said.append(done)) == 32
    pd.testing.assert_frame_equal(numbers(elsewhere), numbers(alone), check_exact=True)
    assert said[-1] == 32
    assert warnings.filters == filters


def test_an_executor_that_breaks_leaves_what_was_finished(tmp_path):
    class Breaks(AnotherMachine):
        tasks = 0

        def submit(self, task, /, *arguments):
            self.tasks += 1
            if self.tasks < 3:
                return super().submit(task, *arguments)
            future = Future()
            future.set_exception(BrokenExecutor("a worker is gone"))
            return future

    store = Store(tmp_path / "results.sqlite")
    with pytest.raises(BrokenExecutor):
        run([experiment()], store, executor=Breaks())
    n_left = 32 - len(store.results())
    assert run([experiment()], store, executor=AnotherMachine()) == n_left


def test_adding_a_method_changes_no_other_result(tmp_path):
    few, many = Store(tmp_path / "few.sqlite"), Store(tmp_path / "many.sqlite")
    run([experiment(methods=METHODS[3:])], few)
    run([experiment()], many)
    kept = numbers(many)[lambda frame: frame["key"].isin(numbers(few)["key"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, numbers(few), check_exact=True)


class Counted(BayesHidLDL):
    """A method that counts its fits."""

    fits = 0

    def fit(self, X, D_obs, observed=None):
        type(self).fits += 1
        return super().fit(X, D_obs, observed)


def given_bayes(kind=BayesHidLDL):
    return kind(nu=50.0, ridge=1.0, width=1.0, standardize=True, prior_rows=1.0, n_components=1)


def test_contenders_that_differ_in_the_rows_scored_share_a_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(Counted, "fits", 0)
    data = votes()
    register_dataset("votes", votes)
    model = given_bayes(Counted)
    contenders = (
        Contender.of("raw", model),
        Contender.of("MeanFill", MeanFill()),
        Contender.of("public", model, rows="public"),
        Contender.of("relative", model, rows="relative"),
    )
    store = Store(tmp_path / "results.sqlite")
    run([Experiment("rows", "recovery", ("votes",), (0.5,), contenders, 1)], store)
    assert Counted.fits == 2  # one that is shared, and one with the parameters that it chose
    results = store.results().set_index("method")
    seed = int(results["seed"].iloc[0])
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=seed)
    alone = given_bayes().set_params(random_state=seed).fit(data.features, D_obs, observed)
    expected = score(data.distributions, alone.distributions_)
    assert results.loc["public", "clark"] == pytest.approx(expected["clark"], rel=1e-9)
    alone.set_params(estimate="relative").fit(data.features, D_obs, observed)
    expected = score(data.distributions, alone.distributions_)
    assert results.loc["relative", "clark"] == pytest.approx(expected["clark"], rel=1e-9)
    assert results.loc["relative", "clark"] != results.loc["public", "clark"]


def test_the_coverage_of_intervals_is_on_record(tmp_path):
    contenders = (Contender.of("with", given_bayes(), interval_level=0.9), Contender.of("without", given_bayes()))
    store = Store(tmp_path / "results.sqlite")
    run([Experiment("coverage", "recovery", ("small",), (0.5,), contenders, 1)], store)
    results = store.results().set_index("method")
    data, seed = small(), int(results["seed"].iloc[0])
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=seed)
    low, high, *_ = given_bayes().set_params(random_state=seed).fit(data.features, D_obs, observed).intervals(0.9)
    inside = ((low <= data.distributions) & (data.distributions <= high))[~observed].mean()
    assert results.loc["with", "shares_held"] == pytest.approx(inside, abs=1e-9)
    assert 0 < results.loc["with", "masses_held"] <= 1
    assert np.isnan(results.loc["without", "shares_held"])
    assert results.loc["with", "chebyshev"] == results.loc["without", "chebyshev"]


def test_a_contender_may_predict_by_itself(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    run([experiment("predictive", (Contender.of("own", given_bayes(), predicts=True),), 1)], store)
    row = store.results().query("dataset == 'small' and rate == 0.4").iloc[0]
    data, seed = small(), int(row["seed"])
    D_obs, observed = hide_labels(data.distributions, rate=0.4, random_state=seed)
    order = np.random.default_rng(seed).permutation(60)
    test, train = order[:12], order[12:]
    model = given_bayes().set_params(random_state=seed).fit(data.features[train], D_obs[train], observed[train])
    expected = score(data.distributions[test], model.predict(data.features[test]))
    assert row["chebyshev"] == pytest.approx(expected["chebyshev"], rel=1e-9)


def test_progress_says_what_is_done(tmp_path):
    told = []
    run(
        [experiment(methods=METHODS[2:3], repetitions=1)],
        Store(tmp_path / "s.sqlite"),
        progress=lambda *a: told.append(a),
    )
    assert [done for done, _, _ in told] == [1, 2, 3, 4]
    assert {total for _, total, _ in told} == {4}
    assert "recovery small 40 % #1" in {words for _, _, words in told}


def test_a_store_of_an_older_version_can_be_read_and_written(tmp_path):
    path = tmp_path / "old.sqlite"
    run([experiment(methods=METHODS[2:3], repetitions=1)], Store(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        for column in ("shares_held", "masses_held"):
            connection.execute(f"ALTER TABLE evaluations DROP COLUMN {column}")
    store = Store(path)
    assert store.results()["shares_held"].isna().all()
    assert run([experiment(methods=METHODS[2:3], repetitions=2)], store) == 4
    assert len(store.results()) == 8


def test_a_store_with_the_old_name_of_a_column_keeps_its_numbers(tmp_path):
    path = tmp_path / "old.sqlite"
    run([experiment(methods=METHODS[2:3], repetitions=1)], Store(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE evaluations SET shares_held = 0.875")
        connection.execute("ALTER TABLE evaluations RENAME COLUMN shares_held TO degrees_held")
    for _ in range(2):
        results = Store(path).results()
        assert (results["shares_held"] == 0.875).all()
        assert "degrees_held" not in results


def test_a_result_of_other_code_is_not_shown_and_is_run_again(tmp_path, monkeypatch):
    store = Store(tmp_path / "results.sqlite")
    assert run([experiment(methods=METHODS[2:], repetitions=1)], store) == 8
    monkeypatch.setattr(protocol, "code_version", lambda of: "new" if of is MeanFill else code_version(of))
    shown = store.results([experiment(methods=METHODS[2:], repetitions=1)])
    assert set(shown["method"]) == {"PT-Bayes"}
    assert run([experiment(methods=METHODS[2:], repetitions=1)], store) == 4


def test_results_have_the_titles_of_the_experiment_that_asks(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    run([experiment(methods=(Contender.of("first", MeanFill()),), repetitions=1)], store)
    renamed = experiment(methods=(Contender.of("second", MeanFill()),), repetitions=1)
    assert run([renamed], store) == 0
    assert set(store.results([renamed])["method"]) == {"second"}


def test_without_the_unix_module_memory_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    store = Store(tmp_path / "results.sqlite")
    run([experiment(methods=METHODS[2:3], repetitions=1)], store)
    assert store.results()["peak_memory_mb"].isna().all()


def test_a_failing_method_is_a_row_with_its_traceback_and_can_be_tried_again(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    broken = experiment(methods=(Contender.of("Broken", Broken()), METHODS[2]), repetitions=1)
    run([broken], store)
    results = store.results()
    assert set(results.query("method == 'MeanFill'")["status"]) == {"done"}
    failed = results.query("method == 'Broken'")
    assert set(failed["status"]) == {"failed"}
    assert failed["traceback"].str.contains("broken on purpose").all()
    assert run([broken], store) == 0
    assert run([broken], store, retry_failed=True) == len(failed)


def test_a_worker_that_is_killed_is_one_line_and_what_is_finished_is_kept(tmp_path, monkeypatch):
    """As joblib says it, without the seconds that its processes take to start."""

    def one_then_none(n_jobs, return_as):
        def work(tasks):
            function, arguments, options = next(iter(tasks))
            yield function(*arguments, **options)
            raise TerminatedWorkerError("A worker process managed by the executor was unexpectedly terminated.\n...")

        return work

    store, wanted = Store(tmp_path / "results.sqlite"), [experiment(methods=METHODS[2:3])]
    with monkeypatch.context() as patch:
        patch.setattr("hidldl.experiments.runner.Parallel", one_then_none)
        with pytest.raises(MemoryError, match=r"^a process was killed, .*fewer processes at a time\.$"):
            run(wanted, store)
    finished = len(store.results())
    assert finished > 0
    assert run(wanted, store) == len(store.results()) - finished > 0


def test_a_method_that_holds_another_runs_too(tmp_path):
    tuned = SelfTuned(IncomLDL(), {"alpha": [1e-3, 1e-1]}, n_draws=1)
    experiment = Experiment("nested", "recovery", ("small",), (0.5,), (Contender.of("tuned", tuned),), 1)
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
    import os, sys
    sys.path.insert(0, sys.argv[1])
    import test_runner as t
    from hidldl.experiments.protocol import register_dataset
    from hidldl.experiments.runner import run
    from hidldl.experiments.store import Store
    register_dataset("small", t.small)
    register_dataset("other", t.other)
    run([t.experiment()], Store(sys.argv[2]))
    for line in sys.stdin:
        word, what = line.rstrip("\\n").split(" ", 1)
        if word == "start":
            pid = os.fork()
            if pid == 0:
                run([t.experiment()], Store(what))
                os._exit(0)
            print(pid, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(int(what), 0)[1]), flush=True)
    """
)


class Runs:
    """Processes that run the experiment. All are forks of one that has done so: kills fall into evaluations."""

    def __init__(self, first):
        here = os.path.dirname(__file__)  # noqa: PTH120
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([sys.executable, "-c", SCRIPT, here, str(first)], **pipes)

    def _ask(self, line):
        print(line, file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def start(self, path):
        return self._ask(f"start {path}")

    def ended(self, pid):
        """How it ended, once it has."""
        return self._ask(f"end {pid}")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.communicate()


def n_rows(path):
    """Of the store that another process writes; 0 before there is one."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0]
    return 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    with Runs(tmp_path_factory.mktemp("runs") / "first.sqlite") as runs:
        yield runs


needs_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")


@needs_forks
def test_a_run_that_is_killed_twenty_times_ends_with_the_same_rows(tmp_path, runs):
    """kill -9 at random moments: nothing half-written is read, nothing that finished is run again."""
    undisturbed = Store(tmp_path / "undisturbed.sqlite")
    n_evaluations = run([experiment()], undisturbed)
    path = tmp_path / "killed.sqlite"
    rng = np.random.default_rng(0)
    for _ in range(20):
        before, patience, pid = n_rows(path), time.monotonic() + 60, runs.start(path)
        while n_rows(path) == before < n_evaluations and time.monotonic() < patience:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(pid, signal.SIGKILL)
        runs.ended(pid)
        rows = numbers(Store(path))
        assert len(rows) > before or before == n_evaluations
        known = numbers(undisturbed)[lambda frame, keys=rows["key"]: frame["key"].isin(keys)]
        assert rows.fillna(-1).to_dict() == known.reset_index(drop=True).fillna(-1).to_dict()
    assert runs.ended(runs.start(path)) == 0
    pd.testing.assert_frame_equal(numbers(Store(path)), numbers(undisturbed), check_exact=True)


@needs_forks
def test_two_runs_on_one_store_do_not_harm_it(tmp_path, runs):
    path = tmp_path / "shared.sqlite"
    assert [runs.ended(pid) for pid in (runs.start(path), runs.start(path))] == [0, 0]
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
