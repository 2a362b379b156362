"""A model of a table, saved and used on another."""

import json
from copy import copy
from time import perf_counter

import numpy as np
import pandas as pd
import pytest

from hidldl import MeanFill, hide_labels, make_distributions, save_model
from hidldl.cli.terminal import WORDS
from hidldl.errors import ModelFileError, TableError
from hidldl.tables.planning import Options
from hidldl.tables.prediction import load_table_model, predict_rows
from hidldl.tables.reading import open_table
from hidldl.tables.recovery import recover_rows

NAMES = ["a", "b", "c"]


def frame_of(n_rows: int = 60) -> pd.DataFrame:
    data = make_distributions(n_rows=n_rows, n_features=2, n_labels=3, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.3, random_state=0)
    frame = pd.DataFrame(data.features, columns=["x", "y"])
    frame["code"] = np.where(data.features[:, 0] > 0, "1", "two")
    frame.loc[::5, "y"] = np.nan
    frame.insert(0, "name", [f"r{i}" for i in range(n_rows)])
    return frame.join(pd.DataFrame(np.where(observed, D_obs, np.nan), columns=NAMES))


def saved(folder, method, name="m.npz", **parameters):
    frame_of().to_csv(folder / "t.csv", index=False)
    with open_table(folder / "t.csv") as table:
        recovery = recover_rows(table, Options(method=method, parameters=parameters))
    recovery.save_model(folder / name)
    return recovery


def predicted(folder, frame: pd.DataFrame, **options):
    frame.to_csv(folder / "new.csv", index=False)
    with open_table(folder / "new.csv") as table:
        prediction = predict_rows(folder / "m.npz", table, **options)
        (piece,) = prediction.pieces(level=prediction.level)
    return prediction, piece


@pytest.fixture(scope="module")
def bayes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bayes")
    saved(folder, "bayes", nu=100, ridge=1, width=1, standardize=True, prior_rows=1, n_components=1)
    return folder


def test_what_was_saved_is_what_comes_back(tmp_path):
    for name in ("m.npz", "m.json"):
        recovery = saved(tmp_path, "meanfill", name)
        model, plan, encoding = load_table_model(tmp_path / name)
        assert isinstance(model, MeanFill)
        assert (plan.roles, plan.marks, plan.total) == (
            recovery.plan.roles,
            recovery.plan.marks,
            recovery.plan.total,
        )
        with open_table(tmp_path / "t.csv") as table:
            assert np.array_equal(encoding(table.read()), recovery.reader.encoding(table.read()))


def test_labels_of_new_rows_are_used_and_kept(bayes):
    frame = frame_of()
    prediction, piece = predicted(bayes, frame, level=0.8)
    kept = piece.D_obs * (1 - piece.hidden_mass)[:, None]
    assert np.where(piece.observed, piece.distributions, 0) == pytest.approx(kept, abs=1e-12)
    assert (piece.low <= piece.high).all()
    assert piece.names.tolist() == frame["name"].tolist()
    assert "labels in 3 of 3 columns are used" in prediction.notes[0]


def test_a_report_tells_how_long_the_prediction_took(bayes):
    began = perf_counter()
    prediction, _ = predicted(bayes, frame_of())
    assert began <= prediction.started <= perf_counter()


def test_tables_without_labels_or_names(bayes):
    prediction, piece = predicted(bayes, frame_of().drop(columns=[*NAMES, "name"]))
    assert piece.names is None
    assert not piece.observed.any()
    assert piece.distributions.sum(axis=1) == pytest.approx(np.ones(60))
    assert "has no labels" in prediction.notes[0]


def test_a_category_is_read_as_text_though_this_table_has_numbers_only(bayes):
    alike = frame_of().assign(code="1")
    _, numbers = predicted(bayes, alike)
    _, texts = predicted(bayes, pd.concat([alike, alike.assign(code="two")]))
    assert np.array_equal(numbers.distributions, texts.distributions[:60])
    assert not np.array_equal(texts.distributions[:60], texts.distributions[60:])


def test_a_method_that_looks_at_no_labels_still_keeps_their_proportions(tmp_path):
    saved(tmp_path, "meanfill")
    _, piece = predicted(tmp_path, frame_of())
    kept = piece.D_obs * (1 - piece.hidden_mass)[:, None]
    assert np.where(piece.observed, piece.distributions, 0) == pytest.approx(kept, abs=1e-12)


def test_new_rows_keep_their_proportions_whatever_the_method(tmp_path):
    saved(tmp_path, "winldl")
    prediction, piece = predicted(tmp_path, frame_of())
    assert "what is observed keeps its proportions" in prediction.notes[0]
    kept = piece.D_obs * (1 - piece.hidden_mass)[:, None]
    assert np.where(piece.observed, piece.distributions, 0) == pytest.approx(kept, abs=1e-12)


def test_what_does_not_fit_is_refused(bayes, tmp_path):
    with pytest.raises(TableError, match=r"no column 'z'; name the column by id="):
        predicted(bayes, frame_of(), row_names="z")
    with pytest.raises(TableError, match="no column 'y', which the model needs"):
        predicted(bayes, frame_of().drop(columns="y"))
    with pytest.raises(TableError, match=r"label column 'b' of new\.csv holds 'many' in row 3"):
        predicted(bayes, frame_of().assign(b=["1", "0", "many", *["1"] * 57]))
    model = MeanFill().fit(np.eye(3), np.full((3, 2), 0.5), np.ones((3, 2), bool))
    save_model(tmp_path / "plain.npz", model)
    with pytest.raises(ModelFileError, match=r"not the model of a table; save one with .*save_model") as at:
        load_table_model(tmp_path / "plain.npz")
    again = copy(at.value)  # as pickle does it
    in_the_shell = "mine.npz is not the model of a table; save one with hidldl recover --model."
    assert again.worded(WORDS, "mine.npz") == in_the_shell


def changed(folder, path, value):
    tree = json.loads((folder / "m.json").read_text())
    node = tree["about"]
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    (folder / "bad.json").write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("roles", "labels"), {"tuple": ["a", "b"]}),
        (("roles", "labels"), {"tuple": ["a", "b", "b"]}),
        (("roles", "labels"), {"tuple": ["a", "b", 7]}),
        (("roles", "labels"), None),
        (("roles", "row_names"), 7),
        (("roles", "__class__"), "x"),
        (("roles", "numbers"), 7),
        (("roles", "categories"), {"array": 0}),
        (("roles", "row_names"), "\ud800"),
        (("marks", "numbers"), {"tuple": ["many"]}),
        (("marks", "words"), True),
        (("marks", "unknown"), {"names": ["a", "b"]}),
        (("encoding", "numbers"), {"tuple": ["x"]}),
        (("encoding", "numbers"), {"tuple": ["x", "x"]}),
        (("encoding", "gappy"), {"tuple": ["z"]}),
        (("encoding", "medians"), None),
        (("encoding", "categories"), {"tuple": ["code"]}),
    ],
)
def test_hostile_parts_are_refused(tmp_path, part, value):
    saved(tmp_path, "meanfill", "m.json")
    changed(tmp_path, ("dict", part[0], "dict", part[1]), value)
    with pytest.raises(ModelFileError) as error:
        load_table_model(tmp_path / "bad.json")
    assert "bad.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_that_do_not_fit_the_model_are_named(tmp_path):
    saved(tmp_path, "meanfill")
    frame = frame_of()
    prediction, _ = predicted(tmp_path, frame.assign(code=frame["code"].where(frame.index != 4, "three")))
    assert "column 'code' holds 'three' in row 5, which the model does not know: it says nothing" in prediction.notes
    with pytest.raises(
        TableError, match=r"not to 1; correct it \(the table has no column for the label 'c'\)"
    ) as error:
        predicted(tmp_path, frame.rename(columns={"c": "C"}))
    assert [remedy.what for remedy in error.value.remedies] == ["normalise"]
    percent = frame.assign(**{name: 100 * frame[name] for name in NAMES})
    _, pieces = predicted(tmp_path, percent)
    assert pieces.distributions == pytest.approx(predicted(tmp_path, frame)[1].distributions)
    percent.loc[3, NAMES] = 70
    with pytest.raises(TableError, match=r"row 4 of new.csv: its labels sum to 210, not to 100"):
        predicted(tmp_path, percent)
