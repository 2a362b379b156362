"""Saved models: they predict the same again, and a file can do nothing but be read."""

import base64
import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from estimators import ESTIMATORS, RECOVERERS, seeded
from hidldl import (
    SABFGS,
    BayesHidLDL,
    HidLDL,
    MeanFill,
    SelfTuned,
    hide_labels,
    load_model,
    make_distributions,
    save_model,
)
from hidldl.errors import ModelFileError
from hidldl.tables.prediction import load_table_model

DATA = make_distributions(n_rows=40, n_features=3, n_labels=4, random_state=0)
HIDDEN = hide_labels(DATA.distributions, 0.4, random_state=0)


def fitted(kind):
    model = seeded(kind)
    if kind is HidLDL:
        model.set_params(alpha="auto", sigma="auto", max_iter=5)
    if kind is SelfTuned:
        model.set_params(recoverer=HidLDL(max_iter=5), grid={"alpha": [1.0, 4.0]}, n_draws=1)
    return model.fit(DATA.features, *HIDDEN) if kind in RECOVERERS else model.fit(DATA.features, DATA.distributions)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_a_loaded_model_predicts_the_same(tmp_path, kind):
    model = fitted(kind)
    for name in ("m.npz", "m.json"):
        save_model(tmp_path / name, model, {"made": "by hand", "rows": 40, "shares": np.arange(3.0)})
        again, about = load_model(tmp_path / name)
        assert type(again) is kind
        assert np.array_equal(again.predict(DATA.features), model.predict(DATA.features))
        if kind in RECOVERERS:
            assert again.parameters_.keys() == model.parameters_.keys()
            same = [
                again.parameters_[name] == value for name, value in model.parameters_.items() if name != "recoverer"
            ]
            assert all(same)
        assert (about["made"], about["rows"], about["shares"].tolist()) == ("by hand", 40, [0, 1, 2])
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["m.json", "m.npz"]


def test_bayes_keeps_intervals_and_labels_of_new_rows(tmp_path, bayes):
    save_model(tmp_path / "m.npz", bayes)
    again, _ = load_model(tmp_path / "m.npz")
    for this, other in zip(
        again.intervals(0.8, X=DATA.features, D_obs=HIDDEN[0], observed=HIDDEN[1]),
        bayes.intervals(0.8, X=DATA.features, D_obs=HIDDEN[0], observed=HIDDEN[1]),
        strict=True,
    ):
        assert np.array_equal(this, other)


def test_names_of_features_and_labels_come_back(tmp_path):
    X = pd.DataFrame(DATA.features, columns=["a", "b", "é"])
    D = pd.DataFrame(DATA.distributions, columns=["joy", "fear", "awe", "😀"])
    model = SABFGS().fit(X, D)
    save_model(tmp_path / "m.json", model)
    predicted = load_model(tmp_path / "m.json")[0].predict(X)
    pd.testing.assert_frame_equal(predicted, model.predict(X))


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.npz"
    path.write_text("old")
    with pytest.raises(TypeError, match="cannot hold"):
        save_model(path, fitted(MeanFill), {"file": object()})
    with pytest.raises(NotFittedError):
        save_model(path, MeanFill())
    with pytest.raises(ModelFileError, match=r"end in \.npz or \.json"):
        save_model(tmp_path / "m.pkl", fitted(MeanFill))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def bayes():
    return BayesHidLDL(nu=100, ridge=1, width=1, standardize=True, prior_rows=1, n_components=1, random_state=0).fit(
        DATA.features, *HIDDEN
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory, bayes):
    """Good files, by name."""
    folder = tmp_path_factory.mktemp("saved")
    for name, model in (("bayes", bayes), ("meanfill", fitted(MeanFill)), ("sabfgs", fitted(SABFGS))):
        save_model(folder / f"{name}.npz", model)
        save_model(folder / f"{name}.json", model)
    return folder


def tree_of(path: Path) -> dict:
    return json.loads(path.read_text())


def encoded(array: np.ndarray, **options) -> str:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return base64.b64encode(buffer.getvalue()).decode()


class Trap:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "executed")


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    message = str(error.value)
    assert "\n" not in message
    assert path.name in message
    return message


def changed_state(tree: dict, **state) -> dict:
    tree["model"]["state"].update(state)
    return tree


DEEP = 100_000
JSON_TRAPS = {
    "no JSON": lambda tree: "{",
    "another JSON": lambda tree: {"a": 1},
    "a list": lambda tree: [],
    "no arrays": lambda tree: {**tree, "arrays": []},
    "another release": lambda tree: {**tree, "format": "hidldl model 99"},
    "absurd nesting": lambda tree: json.dumps(tree).replace('"about": null', '"about": ' + "[" * DEEP + "]" * DEEP),
    "absurd nesting of lists": lambda tree: json.dumps(tree).replace(
        '"about": null', '"about": ' + '{"list": [' * 5000 + "]}" * 5000
    ),
    "unknown class": lambda tree: {**tree, "model": {"object": "Popen", "state": {}}},
    "class with a path": lambda tree: {**tree, "model": {"object": "os.system", "state": {}}},
    "no estimator": lambda tree: {**tree, "model": {"object": "Ridge", "state": {}}},
    "a number for a model": lambda tree: {**tree, "model": 7},
    "dunder attribute": lambda tree: changed_state(tree, __class__="x"),
    "a method": lambda tree: changed_state(tree, predict="x"),
    "a private method": lambda tree: changed_state(tree, _predict=None),
    "index beyond the arrays": lambda tree: changed_state(tree, mean_={"array": 99}),
    "text for an array": lambda tree: changed_state(tree, mean_="many"),
    "NaN for a number": lambda tree: json.dumps(tree).replace('"n_features_in_": 3', '"n_features_in_": NaN'),
    "features without end": lambda tree: changed_state(tree, n_features_in_=10**12),
    "no feature": lambda tree: changed_state(tree, n_features_in_=0),
    "text for features": lambda tree: changed_state(tree, n_features_in_="three"),
    "NaN in an array": lambda tree: {**tree, "arrays": [encoded(np.full(4, np.nan))]},
    "no distribution": lambda tree: {**tree, "arrays": [encoded(np.full(4, 7.0))]},
    "wrong shape": lambda tree: {**tree, "arrays": [encoded(np.zeros((2, 2, 2)))]},
    "times": lambda tree: {**tree, "arrays": [encoded(np.zeros(4, "datetime64[s]"))]},
    "records": lambda tree: {**tree, "arrays": [encoded(np.zeros(4, [("a", float)]))]},
    "no base64": lambda tree: {**tree, "arrays": ["?"]},
    "names that do not fit": lambda tree: changed_state(tree, label_names_={"names": ["a", "b"]}),
}  # fmt: skip


@pytest.mark.parametrize("trap", JSON_TRAPS)
def test_hostile_json_is_refused_in_one_line(tmp_path, saved, trap):
    content = JSON_TRAPS[trap](tree_of(saved / "meanfill.json"))
    path = tmp_path / "m.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    refused(path)


@pytest.mark.parametrize("name", ["bayes.npz", "bayes.json", "sabfgs.npz"])
def test_truncated_files_are_refused(tmp_path, saved, name):
    whole = (saved / name).read_bytes()
    path = tmp_path / name
    for length in np.linspace(0, len(whole) - 1, 12).astype(int):
        path.write_bytes(whole[:length])
        refused(path)


def test_arrays_of_a_bayes_model_must_fit_together(tmp_path, saved):
    """Compiled code would read beyond arrays that are too short."""
    tree = tree_of(saved / "bayes.json")
    path = tmp_path / "m.json"
    for k, text in enumerate(tree["arrays"]):
        array = np.load(io.BytesIO(base64.b64decode(text)))
        if array.ndim == 0 or not array.size:
            continue
        others = {
            **tree,
            "arrays": [encoded(array[:-1]) if j == k else other for j, other in enumerate(tree["arrays"])],
        }
        path.write_text(json.dumps(others))
        refused(path)


def rezipped(path: Path, target: Path, change) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in change(members).items():
            archive.writestr(name, content)


def npy(array: np.ndarray, **options) -> bytes:
    return base64.b64decode(encoded(array, **options))


def test_a_pickle_in_an_archive_is_not_executed(tmp_path, saved):
    left_behind = tmp_path / "executed"
    trap = np.array([Trap(left_behind)], dtype=object)
    rezipped(
        saved / "meanfill.npz",
        tmp_path / "m.npz",
        lambda members: {**members, "array0.npy": npy(trap, allow_pickle=True)},
    )
    refused(tmp_path / "m.npz")
    (tmp_path / "p.npz").write_bytes(pickle.dumps(Trap(left_behind)))
    refused(tmp_path / "p.npz")
    (tmp_path / "p.json").write_text(
        json.dumps({**tree_of(saved / "meanfill.json"), "arrays": [encoded(trap, allow_pickle=True)]})
    )
    refused(tmp_path / "p.json")
    assert not left_behind.exists()


def claiming(dtype: str, shape: str, data: bytes = bytes(32)) -> bytes:
    """An array whose header says what it likes."""
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


CLAIMS = {
    "a million million numbers": claiming("'<f8'", "(1000000000000,)"),
    "texts without letters": claiming("'<U0'", "(1000000000,)", b""),
    "rows without columns": claiming("'<f8'", "(1000000000, 0)", b""),
    "fewer than none": claiming("'<f8'", "(-4,)"),
    "fewer than none twice": claiming("'<f8'", "(-2, -2)"),
    "objects": claiming("'|O'", "(4,)"),
    "arrays in cells": claiming("'(1000000000,)<f8'", "(1,)"),
    "a long text": claiming("'<U1000000000'", "(1,)"),
    "more than it says": claiming("'<f8'", "(2,)"),
    "numbers that are no characters": claiming("'<U1'", "(8,)", b"\x00\x00\x11\x00" * 8),
    "halves of characters": claiming("'<U1'", "(8,)", b"\x00\xd8\x00\x00" * 8),
    "no number for a length": claiming("'<f8'", "('4',)"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_room_is_made_for_what_a_header_claims(tmp_path, saved, claim):
    rezipped(saved / "meanfill.npz", tmp_path / "m.npz", lambda members: {**members, "array0.npy": CLAIMS[claim]})
    text = base64.b64encode(CLAIMS[claim]).decode()
    (tmp_path / "m.json").write_text(json.dumps({**tree_of(saved / "meanfill.json"), "arrays": [text]}))
    for name in ("m.npz", "m.json"):
        assert peak_bytes(lambda name=name: refused(tmp_path / name)) < 2**20


def peak_bytes(act) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "state",
    [
        {"n_draws": 30_000_000},
        {"n_draws": -1},
        {"n_jobs": 10**9},
        {"n_labels_": 1, "n_draws": 4_000_000},
        {"feature_names_in_": {"names": ["a"]}},
        {"nu": "many"},
        {"label_names_": {"names": ["a", "b", "c", "\ud800"]}},
        {"label_names_": {"list": ["a", "b", "c", "d"]}},
    ],
    ids=str,
)
def test_parameters_of_a_file_are_checked_before_they_are_used(tmp_path, saved, state):
    (tmp_path / "m.json").write_text(json.dumps(changed_state(tree_of(saved / "bayes.json"), **state)))
    assert peak_bytes(lambda: refused(tmp_path / "m.json")) < 2**22


def test_the_model_within_a_model_is_checked_too(tmp_path, bayes):
    """Compiled code reads beyond arrays that are too short, also where another model is around theirs."""
    around = fitted(SelfTuned)
    around.recoverer_ = bayes
    save_model(tmp_path / "m.json", around)
    tree = tree_of(tmp_path / "m.json")
    load_model(tmp_path / "m.json")
    tree["model"]["state"]["recoverer_"]["state"]["n_draws"] = 30_000_000
    (tmp_path / "m.json").write_text(json.dumps(tree))
    assert peak_bytes(lambda: refused(tmp_path / "m.json")) < 2**22


@pytest.mark.parametrize("about", [np.arange(3.0), "words", 7, ["a"], {"roles": [1]}], ids=str)
def test_words_that_are_not_those_of_a_table_are_refused(tmp_path, about):
    save_model(tmp_path / "m.json", fitted(MeanFill), about)
    with pytest.raises(ModelFileError, match=r"^m\.json is not the model of a table; .*$"):
        load_table_model(tmp_path / "m.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda members: {name: content for name, content in members.items() if name != "tree.npy"},
        lambda members: {**members, "tree.npy": npy(np.array("{"))},
        lambda members: {**members, "tree.npy": b"text"},
        lambda members: {"../" + name: content for name, content in members.items()},
        lambda members: {},
    ],
    ids=["no tree", "tree cut off", "tree no array", "names that climb", "empty archive"],
)
def test_hostile_archives_are_refused(tmp_path, saved, change):
    rezipped(saved / "meanfill.npz", tmp_path / "m.npz", change)
    refused(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == [tmp_path / "m.npz"]


def test_compressed_archives_are_refused(tmp_path, saved):
    with zipfile.ZipFile(saved / "meanfill.npz") as archive, zipfile.ZipFile(tmp_path / "m.npz", "w", 8) as target:
        for name in archive.namelist():
            target.writestr(name, archive.read(name))
    refused(tmp_path / "m.npz")


def test_what_is_no_file_is_refused(tmp_path):
    assert "is not a file; check the path" in refused(tmp_path / "m.npz")
    (tmp_path / "m.json").mkdir()
    refused(tmp_path / "m.json")
    (tmp_path / "m.txt").write_text("")
    assert "end in .npz or .json" in refused(tmp_path / "m.txt")
