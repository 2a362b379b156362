"""Fits on a Dask cluster are those in memory, whatever the partitions are and whichever workers are lost."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hidldl import SABFGS, BayesHidLDL, HidLDL, MeanFill, hide_labels, load_model, make_distributions, save_model

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from hidldl.recovery.partitions_dask import Partitions, read  # noqa: E402  it needs Dask

GIVEN = {"nu": 256.0, "ridge": 10.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "ordered": False}
BAYES = {**GIVEN, "n_components": 1, "n_landmarks": 40, "hiding": "uniform", "random_state": 0, "max_iter": 30}


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def table():
    data = make_distributions(n_rows=600, n_labels=5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, rate=0.4, random_state=0)
    return data.features, np.where(observed, D_obs, np.nan), observed


def in_parts(*arrays, rows=(100, 250, 250)):
    return [da.from_array(array, chunks=(rows, -1)) for array in arrays]


@pytest.mark.parametrize("rows", [(600,), (1, 99, 250, 250)])
@pytest.mark.parametrize(
    "model",
    [
        MeanFill(),
        BayesHidLDL(**BAYES),
        BayesHidLDL(**{**BAYES, "n_components": 2}),
        BayesHidLDL(**BAYES, learn_distance=True),
    ],
)
def test_a_fit_in_partitions_is_the_fit_in_memory(table, model, rows):
    X, D_obs, _ = table
    model.fit(X, D_obs)
    expected, n_iter = (model.distributions_, model.hidden_mass_), model.n_iter_
    model.fit(*in_parts(X, D_obs, rows=rows))
    assert isinstance(model.distributions_, da.Array)
    assert model.distributions_.chunks[0] == rows
    for lazy, known in zip((model.distributions_, model.hidden_mass_), expected, strict=True):
        np.testing.assert_allclose(lazy.compute(), known, atol=1e-6)
    assert model.n_iter_ == n_iter
    assert model.predict(X[:3]).shape == (3, 5)


def test_parameters_are_chosen_as_in_memory(table):
    X, D_obs, observed = table
    settings = {"n_components": 1, "n_landmarks": 30, "width": 1.0, "standardize": True, "prior_rows": 1.0}
    here, there = (BayesHidLDL(**settings, hiding="uniform", random_state=0) for _ in range(2))
    here.fit(X, D_obs, observed)
    there.fit(*in_parts(X, D_obs, observed))
    assert there.parameters_ == here.parameters_
    np.testing.assert_allclose(there.distributions_, here.distributions_, atol=1e-6)
    np.testing.assert_allclose(there.hidden_rate_, here.hidden_rate_)
    np.testing.assert_allclose(there.kinds_, here.kinds_)


def test_shares_of_few_votes_are_no_more_exact_than_in_memory():
    data = make_distributions(n_rows=300, n_labels=5, random_state=1)
    shares = np.random.default_rng(0).multinomial(3, data.distributions) / 3
    D_obs, observed = hide_labels(shares, rate=0.5, random_state=0)
    settings = {**BAYES, "nu": "auto", "n_landmarks": 30}
    here, there = BayesHidLDL(**settings).fit(data.features, D_obs, observed), BayesHidLDL(**settings)
    there.fit(*in_parts(data.features, D_obs, observed, rows=(100, 200)))
    assert there.parameters_ == here.parameters_
    assert there.parameters_["nu"] < 4 * 3


def test_votes_weigh_rows_as_in_memory(table):
    X, D_obs, _ = table
    votes = np.random.default_rng(0).integers(1, 50, len(X)).astype(float)
    here, there = BayesHidLDL(**BAYES).fit(X, D_obs, votes=votes), BayesHidLDL(**BAYES)
    parts = in_parts(X, D_obs)
    there.fit(*parts, votes=da.from_array(votes, chunks=(parts[0].chunks[0],)))
    np.testing.assert_allclose(there.distributions_, here.distributions_, atol=1e-6)
    with pytest.raises(TypeError, match="does not use votes"):
        MeanFill().fit(*parts, votes=da.from_array(votes, chunks=100))


@pytest.mark.parametrize("model", [MeanFill(), BayesHidLDL(**BAYES)])
def test_frames_come_back_as_frames_with_their_index_and_label_names(table, model):
    X, D_obs, observed = table
    index = [f"r{i:03d}" for i in range(len(X))]
    features = pd.DataFrame(X, index).add_prefix("f")
    shares, mask = (pd.DataFrame(values, index, list("abcde")) for values in (D_obs, observed))
    # An empty partition in between, as filters leave behind.
    left = [*index[:150], *index[300:]]
    parts = [dd.from_pandas(frame, npartitions=4) for frame in (features, shares, mask)]
    model.fit(*[part.map_partitions(lambda frame: frame[frame.index.isin(left)]) for part in parts])
    assert list(model.feature_names_in_) == list(features)
    assert list(model.label_names_) == list("abcde")
    here = clone(model).fit(*[frame.loc[left] for frame in (features, shares, mask)])
    # Dask has a type of its own for text.
    same = {"atol": 1e-6, "check_index_type": False}
    pd.testing.assert_frame_equal(model.distributions_.compute(), here.distributions_, **same)
    pd.testing.assert_series_equal(model.hidden_mass_.compute(), here.hidden_mass_, **same)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, with pandas 3.1
def test_a_parquet_table_is_read_in_its_own_partitions(table, tmp_path):
    X, D_obs, _ = table
    frame = pd.DataFrame(np.hstack([X, D_obs])).set_axis([*(f"f{j}" for j in range(X.shape[1])), *"abcde"], axis=1)
    for i in range(4):
        frame[i * 150 : (i + 1) * 150].to_parquet(tmp_path / f"{i}.parquet")
    parts = dd.read_parquet(tmp_path)
    # One column of many: by itself, Dask would read it in fewer partitions.
    model = MeanFill().fit(parts[["f0"]], parts[list("abcde")])
    model.distributions_.to_parquet(tmp_path / "recovered")
    expected = MeanFill().fit(X, D_obs).distributions_
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "recovered"), expected, atol=1e-6)
    assert len(list((tmp_path / "recovered").glob("*.parquet"))) == 4


def test_tasks_read_their_own_partitions_unless_these_share_work_or_are_in_memory(table, tmp_path):
    X, D_obs, _ = table
    frame = pd.DataFrame(np.hstack([X, D_obs])).set_axis([*(f"f{j}" for j in range(X.shape[1])), *"abcde"], axis=1)
    for i in range(4):
        frame[i * 150 : (i + 1) * 150].to_parquet(tmp_path / f"{i}.parquet")
    parts = dd.read_parquet(tmp_path)
    from_files = Partitions({"X": parts[["f0", "f1"]].abs(), "D_obs": parts[list("abcde")]})
    recipes, number, kept = from_files.arguments(2)
    assert not kept
    np.testing.assert_array_equal(read((recipes.compute(), number, kept), "X"), frame[["f0", "f1"]].abs()[300:450])
    whole = dask.delayed(np.asarray)(D_obs)
    halves = da.concatenate([da.from_delayed(whole[i * 300 : (i + 1) * 300], (300, 5), float) for i in range(2)])
    for in_memory_or_shared in (in_parts(D_obs)[0], halves, parts[list("abcde")].persist()):
        _, _, kept = Partitions({"D_obs": in_memory_or_shared}).arguments(1)
        assert dask.is_dask_collection(kept["D_obs"])


def test_a_model_of_the_cluster_is_saved_and_answers_for_rows_in_memory(table, tmp_path):
    X, D_obs, _ = table
    model = BayesHidLDL(**BAYES).fit(*in_parts(X, D_obs))
    save_model(tmp_path / "model.npz", model)
    loaded, _ = load_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X[:5], D_obs[:5]), model.predict(X[:5], D_obs[:5]))
    assert model.intervals(X=X[:5], D_obs=D_obs[:5]).low.shape == (5, 5)
    with pytest.raises(ValueError, match="on the cluster; give X"):
        model.intervals()


def test_float32_stays_float32(table):
    X, D_obs, _ = table
    for model in (MeanFill(), BayesHidLDL(**BAYES)):
        model.fit(*in_parts(X.astype(np.float32), D_obs.astype(np.float32)))
        assert model.distributions_.dtype == np.float32
        assert model.distributions_.compute().dtype == np.float32


def test_messages_name_the_row_of_the_table(table):
    X, D_obs, _ = table
    wrong, endless = D_obs.copy(), X.copy()
    wrong[407] = [0.5, 0.2, 0.1, 0.1, 0.5]
    endless[300, 2] = np.inf
    for features, shares, words in (
        (X, wrong, "row 407 of D_obs sums to 1.4"),
        (endless, D_obs, "inf in row 300, column 2"),
    ):
        with pytest.raises(ValueError, match=words):
            MeanFill().fit(*in_parts(features, shares))
    unseen = D_obs.copy()
    unseen[:, 3] = np.nan
    unseen /= np.nansum(unseen, axis=1, keepdims=True)
    unseen = unseen[np.nansum(unseen, axis=1) > 0]
    with pytest.raises(ValueError, match="label 3 of D_obs is hidden in every row"):
        MeanFill().fit(*in_parts(X[: len(unseen)], unseen, rows=(len(unseen),)))


def test_what_cannot_be_done_on_a_cluster_is_refused_with_what_can(table):
    X, D_obs, _ = table
    parts = in_parts(X, np.nan_to_num(D_obs))
    with pytest.raises(ValueError, match='zeros="hidden" or zeros="true"'):
        BayesHidLDL(**BAYES).fit(*parts)
    with pytest.warns(UserWarning, match="every zero is taken as hidden"):
        MeanFill().fit(*parts)
    for method in (HidLDL(), SABFGS()):
        with pytest.raises(TypeError, match="BayesHidLDL or MeanFill"):
            method.fit(*parts)
    with pytest.raises(ValueError, match="D_obs is in memory"):
        MeanFill().fit(parts[0], D_obs)
    with pytest.raises(ValueError, match='needs hiding="uniform"'):
        BayesHidLDL(hiding="degree").fit(*parts)
    with pytest.raises(ValueError, match="X has 2 partitions but D_obs has 3"):
        MeanFill().fit(in_parts(X[:500], rows=(250, 250))[0], in_parts(D_obs)[0])


def test_a_worker_that_dies_changes_nothing(table):
    distributed = pytest.importorskip("distributed")
    X, D_obs, _ = table
    parts, quick = in_parts(X, D_obs, rows=(150,) * 4), {**BAYES, "max_iter": 6}
    killed = []

    def kill_one(done, total, words):
        if done == 4 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    on_cluster = dask.config.set(scheduler="distributed")
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client, on_cluster:
        all_lived, one_died = (BayesHidLDL(**quick, verbose=verbose).fit(*parts) for verbose in (False, kill_one))
        expected, recovered = (model.distributions_.compute() for model in (all_lived, one_died))
    assert killed
    np.testing.assert_array_equal(recovered, expected)
    np.testing.assert_array_equal(one_died.history_["change"], all_lived.history_["change"])
    np.testing.assert_allclose(expected, BayesHidLDL(**quick).fit(X, D_obs).distributions_, atol=1e-6)
