"""From a table to its complete distributions: as a whole and streamed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hidldl import BayesHidLDL, HidLDL, hide_labels, make_distributions
from hidldl.errors import TableError
from hidldl.methods import method_names
from hidldl.recovery.incomldl import IncomLDL
from hidldl.recovery.selftuned import SelfTuned
from hidldl.tables import delimited
from hidldl.tables import recovery as pipeline
from hidldl.tables import results as results_module
from hidldl.tables.planning import Options
from hidldl.tables.reading import open_table
from hidldl.tables.recovery import make_model, recover_rows

NAMES = ["a", "b", "c", "d"]
GIVEN = {"nu": 100, "ridge": 1, "width": 1, "standardize": True, "prior_rows": 1, "n_components": 1}
QUICK = Options(parameters=GIVEN, n_jobs=1, level=0.9)
N_ROWS = 150


def frame_of() -> pd.DataFrame:
    data = make_distributions(n_rows=N_ROWS, n_features=3, n_labels=4, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.4, random_state=0)
    frame = pd.DataFrame(data.features, columns=["x", "y", "z"])
    frame["kind"] = np.where(data.features[:, 0] > 0, "old", "new")
    frame.loc[::5, "kind"] = "NA"
    frame.loc[::6, "y"] = np.nan
    frame.insert(0, "name", [f"r{i}" for i in range(N_ROWS)])
    frame = frame.join(pd.DataFrame(np.where(observed, D_obs, np.nan), columns=NAMES))
    frame.loc[[4, 90], NAMES] = np.nan
    return frame


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    frame_of().to_csv(path, index=False)
    return path


def recovered(path, options=QUICK):
    with open_table(path) as table:
        recovery = recover_rows(table, options)
        pieces = list(recovery.pieces(level=options.level))
    return recovery, pieces


def joined(pieces, name):
    return np.concatenate([getattr(piece, name) for piece in pieces])


def check(pieces):
    """What is true of every recovery that keeps proportions."""
    D, D_obs, observed = (joined(pieces, name) for name in ("distributions", "D_obs", "observed"))
    assert D.min() >= 0
    assert np.abs(D.sum(axis=1) - 1).max() < 1e-9
    mass = joined(pieces, "hidden_mass")
    assert np.where(observed, D, 0) == pytest.approx(D_obs * (1 - mass)[:, None], abs=1e-12)
    assert joined(pieces, "names").tolist() == [f"r{i}" for i in range(N_ROWS)]
    assert joined(pieces, "numbers").tolist() == list(range(1, N_ROWS + 1))
    return D


@pytest.fixture(scope="module")
def whole(path):
    return recovered(path)


def test_a_whole_table(whole):
    recovery, pieces = whole
    D = check(pieces)
    labelled = ~frame_of()[NAMES].isna().all(axis=1).to_numpy()
    assert np.array_equal(D[labelled], recovery.model.distributions_)
    assert D[4] != pytest.approx(D[90])
    assert recovery.reader.encoding.categories == (("kind", ("new", "old")),)
    assert any("rows without any label: 2" in note for note in recovery.notes)


@pytest.mark.parametrize("at_once", [10**6, 100])
def test_the_result_does_not_depend_on_how_the_file_comes(path, tmp_path, monkeypatch, at_once, whole):
    """Chunks of the reader, threads and formats change nothing; the model is of a sample where the table is long."""
    monkeypatch.setattr(pipeline, "AT_ONCE", at_once)
    first = recovered(path)[1] if at_once < N_ROWS else whole[1]
    check(first)
    frame_of().to_csv(tmp_path / "t.tsv.gz", index=False, sep="\t")
    monkeypatch.setattr(delimited, "CHUNK_BYTES", 1000)
    again = recovered(tmp_path / "t.tsv.gz", replace(QUICK, n_jobs=2))[1]
    for name in ("distributions", "low", "high", "mass_low", "mass_high"):
        assert np.array_equal(joined(first, name), joined(again, name)), name


def test_a_streamed_table_in_chunks_of_any_size(path, monkeypatch, whole):
    monkeypatch.setattr(pipeline, "AT_ONCE", 100)
    results = []
    for chunk_rows in (7, 64, 1000):
        monkeypatch.setattr(results_module, "CHUNK_ROWS", chunk_rows)
        monkeypatch.setattr(pipeline, "CHUNK_ROWS", chunk_rows)
        recovery, pieces = recovered(path)
        assert recovery.whole is None
        assert max(len(piece.distributions) for piece in pieces) <= chunk_rows
        results.append(check(pieces))
    assert results[1] == pytest.approx(results[0], abs=1e-7)
    assert results[2] == pytest.approx(results[0], abs=1e-7)
    # Fitted to two thirds of the rows, it tells nearly the same.
    assert np.abs(results[0] - joined(whole[1], "distributions")).mean() < 0.03
    assert any("fitted to 100 of 150 rows, drawn at random" in note for note in recovery.notes)


def test_progress_goes_from_nothing_to_all(path):
    shares = []

    def note(done, total, words):
        shares.append(done / total)

    with open_table(path) as table:
        list(recover_rows(table, Options(method="hidldl"), note).pieces(note))
    assert len(shares) > 44  # the trials of alpha are steps too
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize("method", method_names())
def test_every_method_has_a_model(method):
    model = make_model(Options(method=method, random_state=3, n_jobs=2))
    given = model.get_params(deep=False)
    assert given.get("random_state", 3) == 3
    assert given.get("n_jobs", 2) == 2


def test_parameters_that_are_given_are_not_chosen():
    tuned = make_model(Options(method="incomldl"))
    assert isinstance(tuned, SelfTuned)
    given = make_model(Options(method="incomldl", parameters={"alpha": 2.0}))
    assert isinstance(given, IncomLDL)
    assert given.alpha == 2
    assert make_model(Options(method="hidldl", parameters={"alpha": 2.0})).alpha == 2
    assert isinstance(make_model(Options(method="hidldl")), HidLDL)
    assert isinstance(make_model(Options()), BayesHidLDL)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (Options(method="magic"), "no method 'magic'; choose from bayes"),
        (Options(parameters={"alpha": 1}), "bayes has no parameter 'alpha'; its parameters are"),
        (
            Options(method="meanfill", level=0.9),
            "meanfill has no intervals",
        ),
    ],
)
def test_models_that_cannot_be_made(options, says):
    with pytest.raises(TableError, match=says):
        make_model(options)
