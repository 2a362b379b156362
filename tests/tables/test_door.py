"""The door for tables from Python: the same numbers as from the shell and the page, whatever the table comes in."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hidldl import TableError, hide_labels, make_distributions, predict_table, recover_table
from hidldl.__main__ import main
from hidldl.app import work
from hidldl.app.options import prediction_options_of

NAMES = ["joy", "fear", "anger", "calm"]
GIVEN = {"nu": 100, "ridge": 1, "width": 1, "standardize": True, "prior_rows": 1, "n_components": 1}


@pytest.fixture(scope="module")
def faces():
    data = make_distributions(n_rows=60, n_features=3, n_labels=4, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.4, random_state=0)
    frame = pd.DataFrame(data.features, columns=["x_1", "x_2", "x_3"])
    frame.insert(0, "face", [f"{i:03d}" for i in range(60)])
    return frame.join(pd.DataFrame(np.where(observed, D_obs, np.nan), columns=NAMES))


@pytest.fixture(scope="module")
def result(faces):
    return recover_table(faces, parameters=GIVEN, intervals=0.9)


def test_the_frame_is_the_table_with_its_labels_complete(faces, result):
    frame = result.frame
    assert frame.columns.tolist() == [*faces.columns, "hidden_mass"]
    pd.testing.assert_frame_equal(frame[["face", "x_1"]], faces[["face", "x_1"]], check_dtype=False)
    D, given = frame[NAMES].to_numpy(), faces[NAMES].to_numpy()
    assert np.abs(D.sum(axis=1) - 1).max() < 1e-9
    kept = given * (1 - frame["hidden_mass"].to_numpy())[:, None]
    assert D[~np.isnan(given)] == pytest.approx(kept[~np.isnan(given)], abs=1e-12)


def test_results_go_by_the_names_of_the_rows(faces, result):
    assert result.hidden_mass.index.tolist() == faces["face"].tolist()
    assert result.hidden_mass.to_numpy() == pytest.approx(result.frame["hidden_mass"].to_numpy())
    bounds = result.intervals(0.8)
    assert bounds.index.name == "face"
    assert (bounds["joy_low"] <= bounds["joy_high"]).all()
    assert (bounds["hidden_mass_high"] - bounds["hidden_mass_low"])[
        ~faces[NAMES].isna().any(axis=1).to_numpy()
    ].max() < 1e-9
    assert np.allclose(result.distributions, result.frame[NAMES])


def test_python_shell_and_page_give_the_same_numbers(faces, result, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    faces.to_csv("faces.csv", index=False)
    settings = [part for name, value in GIVEN.items() for part in ("--set", f"{name}={value}")]
    done = CliRunner().invoke(main, ["recover", "faces.csv", "-o", "shell.csv", *settings, "--intervals", "0.9"])
    assert done.exit_code == 0, done.output
    request = {
        "path": "faces.csv",
        "name": "faces",
        "sheet": None,
        "options": {"parameters": GIVEN, "intervals": 0.9},
        "files": {"output": "page.csv"},
        "command": "",
    }
    work.recover(request)
    result.write("python.csv")
    by_file = recover_table("faces.csv", parameters=GIVEN, intervals=0.9)
    by_file.write("path.csv")
    with Path("faces.csv").open("rb") as file:
        recover_table(file, parameters=GIVEN, intervals=0.9).write("open.csv")
    texts = {name: (tmp_path / f"{name}.csv").read_text() for name in ("shell", "page", "python", "path", "open")}
    assert len(set(texts.values())) == 1


def test_python_shell_and_page_predict_the_same_numbers(faces, result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result.save_model("m.npz")
    faces.drop(columns=["fear"]).to_csv("new.csv", index=False)
    shell = ["predict", "new.csv", "--model", "m.npz", "-o", "shell.csv", "--normalise", "--intervals", "0.9"]
    done = CliRunner().invoke(main, shell)
    assert done.exit_code == 0, done.output
    request = {
        "path": "new.csv",
        "name": "new",
        "sheet": None,
        "given_model": "m.npz",
        "options": prediction_options_of({"amounts": True, "intervals": True}),
        "files": {"output": "page.csv"},
        "command": "",
    }
    work.predict(request)
    predict_table("new.csv", "m.npz", normalise=True, intervals=0.9).write("python.csv")
    assert len({(tmp_path / f"{name}.csv").read_bytes() for name in ("shell", "page", "python")}) == 1


def test_tables_of_other_libraries(faces, result):
    pa = pytest.importorskip("pyarrow")
    again = recover_table(pa.Table.from_pandas(faces), parameters=GIVEN)
    assert np.allclose(again.distributions, result.distributions)


def test_an_index_with_names_is_what_names_the_rows(faces):
    done = recover_table(faces.set_index("face"), method="meanfill")
    assert done.plan.roles.row_names == "face"
    assert done.frame.index.equals(faces.set_index("face").index)
    assert done.frame.columns.tolist() == [*faces.columns[1:], "hidden_mass"]
    assert done.hidden_mass.index.tolist() == faces["face"].tolist()


def test_a_saved_model_completes_another_table(faces, result, tmp_path):
    result.save_model(tmp_path / "m.npz")
    new = faces.drop(columns=NAMES)
    done = predict_table(new, tmp_path / "m.npz")
    assert done.frame.columns.tolist() == [*new.columns, *NAMES, "hidden_mass"]
    assert np.allclose(done.frame[NAMES].sum(axis=1), 1)
    result.report(tmp_path / "r.html")
    assert "face" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_notebook_shows_what_was_understood(result):
    shown = result._repr_html_()
    assert "labels, guessed" in shown
    assert "hidden_mass" in shown


def test_what_is_no_table_is_refused(faces):
    with pytest.raises(TypeError, match="source must be a path, a DataFrame or an open file, got int"):
        recover_table(7)
    with pytest.raises(TableError) as error:
        recover_table(faces, method="meanfill", intervals=0.9)
    assert [remedy.what for remedy in error.value.remedies] == ["no intervals", "bayes"]
    assert "leave out intervals=" in str(error.value)
    with pytest.raises(TableError, match="is empty"):
        recover_table(io.BytesIO(b""))


def test_names_on_several_levels_are_refused(faces):
    by_two = faces.set_index(["face", "x_1"])
    with pytest.raises(TableError, match=r"^the rows of faces have names on 2 levels; call reset_index\(\) first\.$"):
        recover_table(by_two, name="faces")
    stacked = pd.concat({"mine": faces}, axis=1)
    with pytest.raises(TableError, match="the columns of the table have names on 2 levels; join them first"):
        recover_table(stacked)
    stacked.columns = stacked.columns.map(" ".join)
    assert recover_table(stacked, method="meanfill").plan.roles.labels == tuple(f"mine {name}" for name in NAMES)
