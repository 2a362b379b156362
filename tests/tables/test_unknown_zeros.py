"""Tables with zeros and no empty cells: nobody knows which zeros are hidden, and the table comes back all the same."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from hidldl import MeanFill, TableError, hide_labels, methods, predict_table, recover_table, register_method

LABELS = ["joy", "fear", "anger", "calm"]
PARAMETERS = {"nu": 6.0, "ridge": 3.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}


def faces(n_rows=120):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 2))
    shares = softmax(2 * X @ rng.standard_normal((2, 4)), axis=1)
    D_obs, _ = hide_labels(np.array([rng.multinomial(10, p) for p in shares]) / 10, 0.3, random_state=0)
    return pd.DataFrame(X, columns=["smile", "brows"]).join(pd.DataFrame(D_obs.round(6), columns=LABELS))


def recovered(frame, **options):
    return recover_table(frame, labels=LABELS, parameters=PARAMETERS, **options)


@pytest.fixture(scope="module")
def result():
    return recovered(faces(), intervals=0.9)


def test_zeros_are_weighed_by_default(result):
    notes = " ".join(result.notes)
    assert "nobody knows which zeros are hidden, and each is weighed" in notes
    assert "estimated part of the rows in which each label is overlooked: " in notes
    D = result.frame[LABELS].to_numpy()
    assert np.allclose(D.sum(axis=1), 1)
    given = faces()[LABELS].to_numpy()
    kept = np.where(given > 0, D, 0)
    assert np.allclose(kept / kept.sum(axis=1, keepdims=True), given / given.sum(axis=1, keepdims=True))


def test_users_may_say_what_zeros_are(result):
    hidden, true = (recovered(faces(), hidden=hidden) for hidden in ("zero", "none"))
    masses = [each.hidden_mass.mean() for each in (true, result, hidden)]
    assert masses[0] == 0 < masses[1] < masses[2]
    said = recovered(faces(), hidden="unknown")
    assert np.allclose(said.frame[LABELS], result.frame[LABELS])


def test_empty_cells_are_hidden_and_zeros_unknown_if_said_so():
    frame = faces()
    frame.loc[:9, "joy"] = np.nan
    frame.loc[:9, LABELS] = frame.loc[:9, LABELS].div(frame.loc[:9, LABELS].sum(axis=1), axis=0)
    frame = frame[frame[LABELS].sum(axis=1) > 0].reset_index(drop=True)
    rows = next(recovered(frame, hidden="empty,unknown").pieces())
    assert (rows.hidden[frame["joy"].isna(), 0] == 1).all()
    doubt = rows.hidden[(frame[LABELS] == 0).to_numpy()]
    assert ((doubt > 0) & (doubt < 1)).any()


def test_methods_that_cannot_tell_take_zeros_as_hidden():
    result = recover_table(faces(), labels=LABELS, method="meanfill")
    assert any("zeros are taken as hidden labels" in note for note in result.notes)
    with pytest.raises(TableError, match="cannot tell which zeros are hidden"):
        recover_table(faces(), labels=LABELS, method="meanfill", hidden="unknown")


def test_files_have_the_probabilities(result, tmp_path):
    result.write(tmp_path / "out.csv", report=tmp_path / "report.html", flags=True)
    out = pd.read_csv(tmp_path / "out.csv")
    probabilities = out[[f"{label}_hidden_probability" for label in LABELS]].to_numpy()
    zero = (faces()[LABELS] == 0).to_numpy()
    assert (probabilities[~zero] == 0).all() and (probabilities[zero] > 0).all() and (probabilities <= 1).all()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "probably overlooked in" in page and "are 0 or empty" in page and "Overlooked together" not in page
    rows = json.loads(re.search(r'id="rows-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])["rows"]
    assert all(0 <= chance <= 100 for row in rows for chance in row[6])


def test_new_rows_by_a_saved_model(result, tmp_path):
    result.save_model(tmp_path / "model.npz")
    again = predict_table(faces(), tmp_path / "model.npz")
    assert np.abs(again.frame[LABELS].to_numpy() - result.frame[LABELS].to_numpy()).mean() < 0.03
    assert next(again.pieces()).hidden is not None


def test_the_list_asks_for_cells_in_doubt(result):
    asked = result.reannotate(10)
    frame = faces()
    for number, label in zip(asked["number"], asked["ask_1"], strict=True):
        assert frame.loc[number - 1, label] == 0


def test_tables_and_pieces_without_a_zero_in_doubt():
    complete = faces().assign(joy=0.4, fear=0.3, anger=0.2, calm=0.1)
    complete.loc[5, LABELS] = 0.0  # nobody said anything about this row
    for hidden in ("auto", "unknown"):
        result = recovered(complete, hidden=hidden, intervals=0.9)
        assert np.allclose(result.frame[LABELS].sum(axis=1), 1)
    assert next(result.pieces()).hidden[5].tolist() == [1, 1, 1, 1]


def test_a_report_of_a_saved_model_that_saw_no_zero_in_doubt(tmp_path):
    complete = faces().assign(joy=0.4, fear=0.3, anger=0.2, calm=0.1)
    recovered(complete, hidden="unknown").save_model(tmp_path / "model.npz")
    again = predict_table(faces(), tmp_path / "model.npz")
    again.report(tmp_path / "report.html")
    assert np.allclose(again.frame[LABELS].sum(axis=1), 1)


class ZeroFill(MeanFill):
    """Zeros are weighed, and no rates are told."""

    can_tell_zeros = True


def test_a_report_of_a_method_that_tells_zeros_and_no_rates(tmp_path, monkeypatch):
    monkeypatch.setattr(methods, "_registered", {})
    monkeypatch.setattr(methods, "_registered_classes", {})
    register_method("zerofill", ZeroFill())
    result = recover_table(faces(), labels=LABELS, method="zerofill", hidden="unknown")
    assert result.model.hidden_rates() is None
    result.report(tmp_path / "report.html")
    assert "ZeroFill" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_model_tells_how_often_labels_are_overlooked(result):
    rates, errors = result.model.hidden_rates()
    assert rates.tolist() == np.asarray(result.model.hidden_rate_).tolist()
    assert errors.tolist() == np.asarray(result.model.hidden_rate_error_).tolist()
    assert recovered(faces(), hidden="zero").model.hidden_rates() is None
