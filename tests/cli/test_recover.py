"""``hidldl recover`` and ``hidldl predict`` as a user meets them."""

import gzip
import os
import re
import signal
import subprocess
import sys
from html import unescape
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hidldl import MeanFill, hide_labels, make_distributions
from hidldl.__main__ import main
from hidldl.tables import recovery, results
from malformed import LABELS, MALFORMED

NAMES = ["joy", "fear", "anger", "calm"]
QUICK = (
    "--set",
    "nu=100",
    "--set",
    "ridge=1",
    "--set",
    "width=1",
    "--set",
    "standardize=true",
    "--set",
    "prior_rows=1",
    "--set",
    "n_components=1",
)


def faces(n_rows: int = 60) -> pd.DataFrame:
    data = make_distributions(n_rows=n_rows, n_features=3, n_labels=4, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.4, random_state=0)
    frame = pd.DataFrame(data.features, columns=["x_1", "x_2", "x_3"])
    frame.insert(0, "face", [f"{i:03d}" for i in range(n_rows)])
    return frame.join(pd.DataFrame(np.where(observed, D_obs, np.nan), columns=NAMES))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command in a folder of its own, which holds faces.csv."""
    monkeypatch.chdir(tmp_path)
    faces().to_csv("faces.csv", index=False)

    def invoke(*arguments, **options):
        digits = ["--full-precision"] if arguments[0] in ("recover", "predict") else []
        return CliRunner().invoke(main, [*arguments, *digits], **options)

    return invoke


def recovered(path: str = "out.csv", table: pd.DataFrame | None = None, **options) -> pd.DataFrame:
    """The result, if it is what every result must be."""
    frame = pd.read_csv(path, dtype={"face": str}, **options)
    table = faces() if table is None else table
    D, given = frame[NAMES].to_numpy(), table[NAMES].to_numpy()
    assert len(frame) == len(table)
    assert D.min() >= 0
    assert np.abs(D.sum(axis=1) - 1).max() < 1e-9
    mass = np.where(np.isnan(given), D, 0).sum(axis=1)
    assert frame["hidden_mass"].to_numpy() == pytest.approx(mass, abs=1e-12)
    seen = ~np.isnan(given)
    assert D[seen] == pytest.approx((np.nan_to_num(given) * (1 - mass)[:, None])[seen], abs=1e-12)
    return frame


def test_from_a_file_to_a_result_without_any_option(run):
    result = run("recover", "faces.csv", "-o", "out.csv", "--report", "report.html", "--method", "meanfill")
    assert result.exit_code == 0, result.output
    frame = recovered()
    assert frame.columns.tolist() == [*faces().columns, "hidden_mass"]
    assert frame["face"].tolist() == faces()["face"].tolist()
    assert result.stdout == ""
    assert "labels, guessed: 'joy', 'fear', 'anger', 'calm'" in result.stderr
    assert "rows are named by column 'face'" in result.stderr
    assert re.search(r"60 rows, 4 labels: \d+% of the cells were hidden and hold \d+% of the shares", result.stderr)
    page = Path("report.html").read_text()
    assert "faces.csv" in page
    assert "MeanFill" in page
    assert sorted(path.name for path in Path().iterdir()) == ["faces.csv", "out.csv", "report.html"]


def test_bayes_saves_a_model_that_predicts_new_rows(run):
    arguments = ("recover", "faces.csv", "-o", "out.csv", "--model", "m.npz", "--intervals", "0.9", *QUICK)
    assert run(*arguments, "--quiet").output == ""
    frame = recovered()
    for name in (*NAMES, "hidden_mass"):
        assert (frame[f"{name}_low"] <= frame[f"{name}_high"]).all()
    hidden = faces()[NAMES].isna().to_numpy()
    inside = (frame[[f"{name}_low" for name in NAMES]].to_numpy() <= frame[NAMES].to_numpy()) & (
        frame[NAMES].to_numpy() <= frame[[f"{name}_high" for name in NAMES]].to_numpy()
    )
    assert inside[hidden].mean() > 0.9

    new = faces().drop(columns=["fear"]).iloc[::-1]
    new.to_csv("new.csv", index=False)
    arguments = ("predict", "new.csv", "--model", "m.npz", "-o", "new_out.csv", "--report", "new.html")
    assert "use --normalise" in run(*arguments).stderr
    result = run(*arguments, "--normalise")
    assert result.exit_code == 0, result.output
    assert "labels in 3 of 4 columns are used" in result.stderr
    assert pd.read_csv("new_out.csv", dtype={"face": str})["face"].tolist() == new["face"].tolist()

    faces()[["x_2", "x_1", "x_3"]].to_csv("features.csv", index=False)
    result = run("predict", "features.csv", "--model", "m.npz", "-o", "-")
    assert "the table has no labels" in result.stderr
    predicted = pd.read_csv(StringIO(result.stdout))
    assert predicted.columns.tolist() == ["x_2", "x_1", "x_3", *NAMES, "hidden_mass"]
    assert predicted["hidden_mass"].to_numpy() == pytest.approx(np.ones(60))


def test_a_model_in_json_predicts_as_that_in_npz(run):
    for name in ("m.npz", "m.json"):
        assert run("recover", "faces.csv", "-o", "out.csv", "--model", name, "--method", "meanfill").exit_code == 0
        assert run("predict", "faces.csv", "--model", name, "-o", f"{name}.csv").exit_code == 0
    recovered("m.npz.csv")
    assert Path("m.npz.csv").read_bytes() == Path("m.json.csv").read_bytes()


@pytest.mark.parametrize("method", ["hidldl", "incomldl", "winldl", "ldlldm"])
def test_other_methods_by_name(run, method):
    faces(30).to_csv("faces.csv", index=False)
    given = ("--set", "alpha=1") if method in ("hidldl", "incomldl") else ()
    assert run("recover", "faces.csv", "-o", "out.csv", "--method", method, *given).exit_code == 0
    D = pd.read_csv("out.csv")[NAMES].to_numpy()
    assert np.abs(D.sum(axis=1) - 1).max() < 1e-9
    if method == "hidldl":
        recovered(table=faces(30))


def test_the_seed_and_not_the_threads_decide(run):
    results = []
    for jobs in ("1", "2"):
        assert run("recover", "faces.csv", "-o", "out.csv", "--jobs", jobs, "--intervals", "0.8", *QUICK).exit_code == 0
        results.append(Path("out.csv").read_bytes())
    assert results[0] == results[1]


def test_check_says_how_the_table_is_understood(run):
    result = run("recover", "faces.csv", "--check")
    assert result.exit_code == 0
    assert "labels (4): joy, fear, anger, calm" in result.output
    assert "numbers (3): x_1, x_2, x_3" in result.output
    assert [path.name for path in Path().iterdir()] == ["faces.csv"]


def test_counts_of_votes_with_a_category_and_gaps(run):
    rng = np.random.default_rng(0)
    frame = faces()
    frame[NAMES] = np.rint(frame[NAMES] * rng.integers(5, 200, (60, 1)))
    frame.columns = ["title", "year", "x_2", "x_3", *(f"{k} stars" for k in range(1, 5))]
    frame["year"] = rng.integers(1950, 2020, 60)
    frame["genre"] = np.where(rng.random(60) < 0.5, "drama", "comedy")
    frame.loc[::9, "genre"] = np.nan
    frame.loc[::4, "x_2"] = np.nan
    frame.to_csv("films.csv", index=False)
    result = run("recover", "films.csv", "-o", "out.csv", "--method", "meanfill")
    assert result.exit_code == 0, result.output
    assert "labels, guessed: '1 stars', '2 stars', '3 stars', '4 stars'" in result.stderr
    assert "taken as counts" in result.stderr
    assert "missing numbers in 'x_2' are filled with the median" in result.stderr
    assert "categories, one feature for each of their values: 'genre' (2)" in result.stderr
    out = pd.read_csv("out.csv")
    shares = out.filter(like="stars").to_numpy()
    counts = frame.filter(like="stars").to_numpy()
    row = int(np.flatnonzero((~np.isnan(counts)).sum(axis=1) >= 2)[0])
    a, b = np.flatnonzero(~np.isnan(counts[row]))[:2]
    assert shares[row, a] * counts[row, b] == pytest.approx(shares[row, b] * counts[row, a])


@pytest.mark.parametrize(
    ("marked", "hidden"), [(-1, "-1"), (0, "zero"), (999, "999,empty"), (np.nan, "empty"), (0, "auto")]
)
def test_what_marks_a_hidden_label(run, marked, hidden):
    frame = faces()
    assert (frame[NAMES] != 0).all(axis=None)
    frame.fillna(marked).to_csv("marked.csv", index=False)
    arguments = ("recover", "marked.csv", "-o", "out.csv", "--labels", "joy..calm", "--method", "meanfill")
    result = run(*arguments, "--hidden", hidden)
    assert result.exit_code == 0, result.output
    recovered()


def test_a_row_without_any_label_is_predicted(run):
    frame = faces()
    frame.loc[[3, 7], NAMES] = np.nan
    frame.to_csv("faces.csv", index=False)
    result = run("recover", "faces.csv", "-o", "out.csv", *QUICK)
    assert "rows without any label: 2" in result.stderr
    out = pd.read_csv("out.csv")
    assert out.loc[[3, 7], "hidden_mass"].to_numpy() == pytest.approx(np.ones(2))
    assert not np.allclose(out.loc[3, NAMES].to_numpy(float), out.loc[7, NAMES].to_numpy(float))


def test_a_long_table_is_streamed(run, monkeypatch):
    monkeypatch.setattr(recovery, "AT_ONCE", 40)
    monkeypatch.setattr(recovery, "CHUNK_ROWS", 16)
    result = run("recover", "faces.csv", "-o", "out.csv.gz", "--report", "r.html", "--intervals", "0.9", *QUICK)
    assert result.exit_code == 0, result.output
    assert "fitted to 40 of 60 rows, drawn at random" in result.stderr
    assert recovered("out.csv.gz")["face"].tolist() == faces()["face"].tolist()
    text = gzip.decompress(Path("out.csv.gz").read_bytes())
    assert text == subprocess.run(["zcat", "out.csv.gz"], capture_output=True, check=True).stdout
    assert text.count(b"\n") == 61


def test_progress_for_programs(run):
    result = run("recover", "faces.csv", "-o", "out.csv", "--progress", "json", "--quiet", *QUICK)
    shares = [float(re.search(r'"done": ([\d.]+)', line).group(1)) for line in result.stderr.splitlines()]
    assert shares == sorted(shares)
    assert shares[-1] == 1


# What is wrong with a table.

FINE = {
    # The row is predicted from its features.
    "row whose labels are all empty": "rows without any label: 1",
    # No cell is empty, so zeros are hidden labels, and the row is predicted.
    "row whose labels are all zero": "rows without any label: 1",
    # The column can be left out.
    "feature that is empty in every row": "column 'x_1' is left out: it is empty",
    # Rows are recovered from their labels alone.
    "constant features": "no features: rows are recovered from their labels alone",
    "one row": "no features: rows are recovered from their labels alone",
    "no features": "no features: rows are recovered from their labels alone",
    # A first column of different texts names the rows.
    "units": "rows are named by column 'x_1'",
}
"""Tables that are fine for this command, each with what it says of them."""


@pytest.fixture
def wrong(tmp_path, monkeypatch):
    """Runs a command on a file in a folder that holds an output already."""
    monkeypatch.chdir(tmp_path)
    out = Path("out.csv")
    out.write_text("as it was")

    def go(*arguments: str) -> str:
        before = sorted(path.name for path in Path().iterdir())
        result = CliRunner().invoke(main, [*arguments, "-o", "out.csv", "--report", "r.html"])
        assert result.exit_code == 2, result.output
        assert isinstance(result.exception, SystemExit)
        assert result.stdout == ""
        *notes, error = result.stderr.splitlines()  # what was understood comes before the error
        assert all(note.startswith("- ") for note in notes)
        assert error.startswith("Error: ")
        assert len(error) < 400
        assert out.read_text() == "as it was"
        assert sorted(path.name for path in Path().iterdir()) == before
        return result.stderr

    return go


@pytest.mark.parametrize("name", [name for name in MALFORMED if name not in FINE])
def test_a_wrong_table_is_one_line_and_changes_nothing(wrong, name):
    case = MALFORMED[name]
    path = case.write(Path())
    message = wrong("recover", str(path), "--labels", LABELS, "--model", "m.npz")
    assert "table." in message
    assert re.search(case.says, message)


@pytest.mark.parametrize("name", FINE)
def test_what_looks_wrong_and_is_not(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    table = pd.read_csv(MALFORMED[name].write(Path()))
    arguments = ("recover", "table.csv", "--labels", LABELS, "-o", "out.csv", "--method", "meanfill")
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert FINE[name] in result.stderr
    out = pd.read_csv("out.csv")
    assert len(out) == len(table)
    labels = [name for name in table if name.startswith("y_")]
    assert out[labels].sum(axis=1).to_numpy() == pytest.approx(np.ones(len(table)), abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--labels", "z_*"], "no column 'z_\\*' .* its columns are 'face', 'x_1'"),
        (["--labels", "joy"], "one label column"),
        (["--labels", "joy,face"], "its labels sum to"),
        (["--features", "x_1,joy"], "'joy' cannot be a feature too"),
        (["--id", "nope"], "no column 'nope'"),
        (["--id", "face", "--no-id"], "--id names a column and --no-id says that there is none"),
        (["--hidden", "?"], "'\\?' must be auto, empty, zero, unknown, none or a number"),
        (["--hidden", "none"], "empty cells in label column"),
        (["--method", "meanfill", "--intervals", "0.9"], "meanfill has no intervals; leave out --intervals"),
        (["--method", "hidldl", "--set", "beta=1"], "no parameter 'beta'; its parameters are alpha"),
        (["--set", "nu=many"], "nu must be"),
        (["--model", "m.pkl"], r"m.pkl must end in .npz or .json"),
        (["--model", "nowhere/m.npz"], "no folder 'nowhere'"),
        (["--sheet", "first"], "has no sheets"),
        (["--format", "parquet"], "faces.csv"),
    ],
)
def test_a_wrong_option_is_one_line_and_changes_nothing(wrong, arguments, says):
    faces().to_csv("faces.csv", index=False)
    assert re.search(says, wrong("recover", "faces.csv", *arguments))


def test_a_wrong_model_is_one_line_and_changes_nothing(wrong, run):
    run("recover", "faces.csv", "-o", "first.csv", "--model", "m.npz", "--method", "meanfill")
    assert "no.npz is not a file" in wrong("predict", "faces.csv", "--model", "no.npz")
    Path("bad.npz").write_bytes(Path("m.npz").read_bytes()[:200])
    assert "bad.npz is not a model" in wrong("predict", "faces.csv", "--model", "bad.npz")
    faces().drop(columns="x_2").to_csv("less.csv", index=False)
    assert "less.csv has no column 'x_2', which the model needs" in wrong("predict", "less.csv", "--model", "m.npz")
    faces().assign(x_2="a").to_csv("text.csv", index=False)
    assert "'x_2' of text.csv holds text" in wrong("predict", "text.csv", "--model", "m.npz")
    frame = faces()
    frame.loc[50, NAMES] = [0.5, 0.1, 0.1, 0.1]
    frame.to_csv("sums.csv", index=False)
    assert "row 51 of sums.csv: its labels sum to 0.8, not to 1" in wrong("predict", "sums.csv", "--model", "m.npz")
    assert "MeanFill has no intervals" in wrong("predict", "faces.csv", "--model", "m.npz", "--intervals", "0.5")


def test_half_a_table_is_not_handed_to_the_next_program(run, monkeypatch):
    """A wrong row in the last chunk: standard output stays empty."""
    run("recover", "faces.csv", "-o", "out.csv", "--model", "m.npz", "--method", "meanfill")
    frame = faces()
    frame.loc[59, NAMES] = [0.5, 0.1, 0.1, 0.1]
    frame.to_csv("sums.csv", index=False)
    monkeypatch.setattr(recovery, "CHUNK_ROWS", 10)
    result = run("predict", "sums.csv", "--model", "m.npz", "-o", "-")
    assert (result.exit_code, result.stdout) == (2, "")


def test_memory_that_runs_out_in_a_chunk_is_one_line_and_changes_nothing(run, monkeypatch):
    run("recover", "faces.csv", "-o", "out.csv", "--model", "m.npz", "--method", "meanfill")
    before, calls, predict = Path("out.csv").read_bytes(), [], MeanFill.predict

    def runs_out(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise MemoryError
        return predict(*arguments, **options)

    monkeypatch.setattr(recovery, "CHUNK_ROWS", 10)
    monkeypatch.setattr(MeanFill, "predict", runs_out)
    files = sorted(Path().iterdir())
    for output in ("out.csv", "-"):
        calls.clear()
        result = run("predict", "faces.csv", "--model", "m.npz", "-o", output)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines()[-1] == "Error: there is not enough memory for this table."
    assert Path("out.csv").read_bytes() == before
    assert sorted(Path().iterdir()) == files


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "faces.csv"],
        ["-o", "./faces.csv"],
        ["-o", "out.csv", "--model", "x.json", "--report", "link.html"],
        ["-o", "folder.csv"],
        ["-o", "out.dat"],
        ["-o", "nowhere/out.csv"],
        ["--report", "out.txt"],
        [],
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(run, monkeypatch, arguments):
    Path("folder.csv").mkdir()
    Path("link.html").symlink_to("x.json")
    monkeypatch.setattr(recovery, "recover_rows", None)
    before = Path("faces.csv").read_bytes()
    result = run("recover", "faces.csv", *arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert Path("faces.csv").read_bytes() == before


@pytest.mark.parametrize("step", ["save_model", "recovery_page"])
def test_all_files_are_there_or_none(run, monkeypatch, step):
    """The disk is full when the last of them is written."""

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results, step, full)
    Path("out.csv").write_text("as it was")
    result = run(
        "recover", "faces.csv", "-o", "out.csv", "--report", "r.html", "--model", "m.npz", "--method", "meanfill"
    )
    assert result.exit_code == 2
    assert result.stderr == "Error: the result cannot be written: No space left on device.\n"
    assert Path("out.csv").read_text() == "as it was"
    assert sorted(path.name for path in Path().iterdir()) == ["faces.csv", "out.csv"]


# Output to work with.


def plain_run(*arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result


def test_six_digits_are_written_and_rows_still_sum_to_one(run):
    plain_run("recover", "faces.csv", "--method", "meanfill")
    texts = pd.read_csv("faces.recovered.csv", dtype=str)
    assert texts[NAMES].map(lambda text: len(text.partition(".")[2]) <= 6).to_numpy().all()
    units = texts[NAMES].astype(float).mul(1e6).round().astype(int)
    assert (units.sum(axis=1) == 10**6).all()
    assert (
        units.where(faces()[NAMES].isna(), 0).sum(axis=1) == (texts["hidden_mass"].astype(float) * 1e6).round()
    ).all()


def test_names_of_rows_are_no_formulas_if_asked_for(run):
    faces().assign(face=[f"@SUM(A{i})" for i in range(60)], x_1=lambda table: -table["x_1"]).to_csv(
        "f.csv", index=False
    )
    for options, first in (((), "@SUM(A0)"), (("--safe-csv",), "'@SUM(A0)")):
        plain_run("recover", "f.csv", "-o", "out.csv", "--method", "meanfill", "--id", "face", *options)
        frame = pd.read_csv("out.csv")
        assert frame["face"][0] == first
        assert (frame["x_1"] == -faces()["x_1"]).all()


def test_the_result_is_the_table_with_its_labels_complete(run):
    frame = faces().assign(when="2024-05-01", code=[f"c-{i:04d}" for i in range(60)], age=range(60))
    frame["note"] = [*["a, b"] * 30, *[np.nan] * 30]
    frame.to_csv("more.csv", index=False)
    plain_run("recover", "more.csv", "--method", "meanfill", "--flags")
    out = pd.read_csv("more.recovered.csv", dtype={"face": str, "code": str})
    flags = [f"{name}_was_hidden" for name in NAMES]
    assert out.columns.tolist() == [*frame.columns, "hidden_mass", *flags]
    others = [name for name in frame if name not in NAMES]
    pd.testing.assert_frame_equal(out[others], frame[others], check_dtype=False)
    assert np.array_equal(out[flags].to_numpy(), frame[NAMES].isna().to_numpy())
    assert ",59," in Path("more.recovered.csv").read_text()  # whole numbers stay whole
    for keep, columns in (("id", ["face", *NAMES, "hidden_mass"]), ("none", [*NAMES, "hidden_mass"])):
        plain_run("recover", "more.csv", "-o", "kept.csv", "--method", "meanfill", "--keep", keep)
        assert pd.read_csv("kept.csv").columns.tolist() == columns


def test_units_delimiter_and_decimal_mark_are_those_of_the_table(run):
    frame = faces()
    frame[NAMES] = (100 * frame[NAMES]).round(3)
    frame.to_csv("percent.csv", index=False, sep=";", decimal=",")
    plain_run("recover", "percent.csv", "--method", "meanfill")
    out = pd.read_csv("percent.recovered.csv", sep=";", decimal=",")
    assert out[NAMES].sum(axis=1).to_numpy() == pytest.approx(100)
    assert out[NAMES].to_numpy().max() > 1
    plain_run("recover", "percent.csv", "--method", "meanfill", "-o", "shares.csv", "--as", "shares")
    shares = pd.read_csv("shares.csv", sep=";", decimal=",")
    assert shares[NAMES].to_numpy() == pytest.approx(out[NAMES].to_numpy() / 100, abs=1e-6)


def test_a_result_beside_the_table_has_its_format(run):
    for name in ("faces.tsv", "faces.csv.gz", "faces.parquet", "faces.xlsx"):
        write_as(faces(), Path(name))
        plain_run("recover", name, "--method", "meanfill", "--labels", ",".join(NAMES))
        stem, _, suffix = name.partition(".")
        assert Path(f"{stem}.recovered.{suffix}").is_file()
    plain_run("recover", "faces.csv", "--method", "meanfill", "--report", "page.html")
    assert Path("faces.recovered.csv").is_file()
    assert Path("page.html").is_file()
    assert "nothing to write" in CliRunner().invoke(main, ["recover", "-"], input="x\n").stderr


def write_as(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


# A check that checks.


def test_a_check_lists_every_bad_row_and_ends_as_a_run_would(run):
    frame = faces()
    frame.loc[[4, 50], NAMES] = [0.5, 0.1, 0.1, 0.1]
    frame.loc[7, "joy"] = -1
    frame.to_csv("bad.csv", index=False)
    result = CliRunner().invoke(main, ["recover", "bad.csv", "--labels", "joy..calm", "--check"])
    assert result.exit_code == 2
    assert "row 5 (004): its labels sum to 0.8, not to 1" in result.stdout
    assert "row 51 (050): its labels sum to 0.8" in result.stdout
    assert "row 8 (007): -1 in label column 'joy' is negative" in result.stdout
    assert "3 of 60 rows cannot be right." in result.stdout
    result = plain_run("recover", "faces.csv", "--check")
    assert result.stdout.endswith("A run would succeed.\n")
    assert not Path("faces.recovered.csv").exists()


def test_a_check_can_be_looked_at(run):
    frame = faces()
    frame.loc[range(45), NAMES] = [0.5, 0.1, 0.1, 0.1]
    frame.loc[7, "joy"] = -1
    frame["face"] = "<b>" + frame["face"]
    frame.to_csv("bad.csv", index=False)
    told = ["recover", "bad.csv", "--labels", "joy..calm", "--check", "--report", "check.html"]
    result = CliRunner().invoke(main, told)
    assert result.exit_code == 2
    assert "45 rows of bad.csv cannot be right; correct them; use --skip-bad-rows to leave them out" in result.stderr
    page = Path("check.html").read_text(encoding="utf-8")
    assert "A run would not succeed" in page
    assert "<b>45 rows</b> cannot be right" in page
    rows = re.findall(r'<th scope="row">(\d+)</th><td class="name"><bdi>(.*?)</bdi></td><td>(.*?)</td>', page)
    assert [(int(row), name) for row, name, _ in rows] == [(i + 1, f"&lt;b&gt;{i:03d}") for i in range(45)]
    assert {unescape(reason).split(";")[0] for _, _, reason in rows} == {
        "its labels sum to 0.8, not to 1",
        "-1 in label column 'joy' is negative",
    }
    assert sorted(path.name for path in Path().iterdir()) == ["bad.csv", "check.html", "faces.csv"]
    plain_run(*told, "--skip-bad-rows")
    page = Path("check.html").read_text(encoding="utf-8")
    assert "A run would succeed" in page
    assert "cannot be right, and would be left out" in page


def test_a_check_of_what_cannot_be_read_can_be_looked_at_too(run):
    Path("ragged.csv").write_text("x,a,b\n1,0.5,0.5\n2,0.5\n")
    Path("nolabels.csv").write_text("x,y\n" + "".join(f"{i},{i % 7}.5\n" for i in range(20)))
    for name, says in (("ragged", "row 2 of ragged.csv has 2 fields"), ("nolabels", "name them with --labels")):
        result = CliRunner().invoke(main, ["recover", f"{name}.csv", "--check", "--report", "check.html"])
        assert (result.exit_code, says in result.stderr) == (2, True)
        assert says in Path("check.html").read_text(encoding="utf-8")
    result = CliRunner().invoke(main, ["recover", "faces.csv", "--check", "--report", "faces.csv"])
    assert (result.exit_code, "must end in .html" in result.stderr) == (2, True)


def test_bad_rows_are_left_out_and_listed_if_asked_for(run):
    frame = faces()
    frame.loc[[4, 50], NAMES] = [0.5, 0.1, 0.1, 0.1]
    frame.to_csv("bad.csv", index=False)
    result = plain_run("recover", "bad.csv", "--labels", "joy..calm", "--method", "meanfill", "--skip-bad-rows")
    assert "2 rows are left out" in result.stderr
    assert "left out: bad.bad_rows.csv" in result.stderr
    out = pd.read_csv("bad.recovered.csv", dtype={"face": str})
    assert out["face"].tolist() == frame["face"].drop([4, 50]).tolist()
    listed = pd.read_csv("bad.bad_rows.csv")
    assert listed["row"].tolist() == [5, 51]
    assert listed["reason"].str.contains("sum to 0.8").all()


def test_what_is_implausible_is_warned_of(run):
    classes = pd.DataFrame(np.eye(3)[np.arange(40) % 3], columns=["joy", "fear", "anger"])
    classes.insert(0, "x", np.arange(40) % 2 + np.linspace(0, 1e-3, 40).round(1))
    classes.to_csv("classes.csv", index=False)
    result = plain_run("recover", "classes.csv", "--labels", "joy,fear,anger", "--hidden", "none", "--check")
    assert "warning: 40 of 40 rows have one positive label only" in result.stdout
    assert "rows are the same as others" in result.stdout


# Votes, lists, and tables without features.


def test_a_long_table_of_votes_becomes_shares(run):
    rng = np.random.default_rng(0)
    long = pd.DataFrame({"task": np.repeat([f"t{i}" for i in range(30)], 6), "worker": np.tile(list("uvwxyz"), 30)})
    long["label"] = rng.choice(["joy", "fear", "anger"], len(long), p=[0.5, 0.3, 0.2])
    long.to_csv("votes.csv", index=False)
    pd.DataFrame({"task": [f"t{i}" for i in range(30)], "width": rng.normal(size=30)}).to_csv("items.csv", index=False)
    result = plain_run(
        "recover", "votes.csv", "--method", "meanfill", "--features-from", "items.csv", "--hidden", "none"
    )
    assert "180 votes for 3 labels on 30 items are counted" in result.stderr
    out = pd.read_csv("votes.recovered.csv")
    assert len(out) == 30
    assert out["n_votes"].eq(6).all()
    counts = pd.crosstab(long["task"], long["label"]).reindex(out["task"])
    assert out[["anger", "fear", "joy"]].to_numpy() == pytest.approx(counts.to_numpy() / 6, abs=1e-6)


def votes_of_six(label=("joy", "joy", "joy", "fear", "fear", "anger")):
    long = pd.DataFrame({"task": np.repeat([f"t{i}" for i in range(30)], 6), "worker": np.tile(list("uvwxyz"), 30)})
    return long.assign(label=np.tile(label, 30))


def test_a_label_without_a_vote_is_hidden_unless_it_was_shown(run):
    long = votes_of_six()
    long.loc[long["task"] == "t3", "label"] = "joy"
    empty = pd.DataFrame({"task": ["none"], "worker": ["u"]})  # an item without votes changes nothing for the others
    for table in (long, pd.concat([long, empty])):
        table.to_csv("votes.csv", index=False)
        plain_run("recover", "votes.csv", "--method", "meanfill")
        out = pd.read_csv("votes.recovered.csv").set_index("task")
        assert out.loc["t3", "joy"] < 1
    long.assign(choices="joy;fear;anger").to_csv("votes.csv", index=False)
    plain_run("recover", "votes.csv", "--method", "meanfill", "--shown", "choices")
    assert pd.read_csv("votes.recovered.csv").set_index("task").loc["t3", "joy"] == 1


def test_a_check_counts_votes_as_a_run_does(run):
    votes_of_six().to_csv("votes.csv", index=False)
    result = plain_run("recover", "votes.csv", "--method", "meanfill", "--check")
    assert "180 votes for 3 labels on 30 items are counted" in result.stdout
    assert result.stdout.endswith("A run would succeed.\n")


def test_a_wide_table_with_columns_called_as_votes_are_stays_wide(run):
    frame = faces().assign(item=[f"i{i % 20}" for i in range(60)], rater="ann", category="old")
    frame.to_csv("wide.csv", index=False)
    result = plain_run("recover", "wide.csv", "--method", "meanfill")
    assert "votes" not in result.stderr
    assert len(pd.read_csv("wide.recovered.csv")) == 60


def test_a_check_knows_of_rows_that_are_left_out(run):
    frame = faces()
    frame.loc[4, NAMES] = [0.5, 0.1, 0.1, 0.1]
    frame.to_csv("bad.csv", index=False)
    result = plain_run("recover", "bad.csv", "--labels", "joy..calm", "--check", "--skip-bad-rows")
    assert "1 of 60 rows cannot be right." in result.stdout


def test_a_list_of_rows_to_annotate_again(run):
    frame = faces().assign(rater=np.where(np.arange(60) % 2, "ann", "ben"))
    frame.to_csv("rated.csv", index=False)
    arguments = ("--reannotate", "list.csv", "--group", "rater", "--rows", "10", *QUICK)
    plain_run("recover", "rated.csv", "--labels", "joy..calm", *arguments)
    listed = pd.read_csv("list.csv", dtype={"row": str})
    assert len(listed) == 10
    assert listed["uncertainty"].is_monotonic_decreasing
    assert set(listed["rater"]) <= {"ann", "ben"}
    assert listed["ask_1"].str.contains("joy|fear|anger|calm").all()


@pytest.mark.parametrize("method", ["bayes", "meanfill"])
def test_labels_alone_are_enough(run, method):
    faces().drop(columns=["x_1", "x_2", "x_3"]).to_csv("bare.csv", index=False)
    result = plain_run("recover", "bare.csv", "--method", method, "--full-precision")
    assert "no features: rows are recovered from their labels alone" in result.stderr
    recovered("bare.recovered.csv")


def test_words_percent_signs_and_other_encodings(run):
    frame = faces()
    frame[NAMES] = frame[NAMES].map(lambda share: "?" if np.isnan(share) else f"{100 * share:.4f}%")
    frame["face"] = [f"Müller {i}" for i in range(60)]
    Path("messy.csv").write_bytes(frame.to_csv(index=False).encode("cp1252"))
    result = plain_run("recover", "messy.csv", "--method", "meanfill", "--labels", "joy..calm")
    assert "'?'" in result.stderr
    out = pd.read_csv("messy.recovered.csv")
    assert out[NAMES].sum(axis=1).to_numpy() == pytest.approx(100)
    assert out["face"][3] == "Müller 3"


# Other programs before and behind it.


def command(*arguments: str, folder: Path, **options) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "hidldl", *arguments],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        # A shell starts what it runs in the background deaf to Ctrl-C, and so would be what the tests start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def test_from_standard_input_to_standard_output(tmp_path):
    text = faces().to_csv(index=False).encode()
    process = command(
        "recover",
        "-",
        "-o",
        "-",
        "--method",
        "meanfill",
        "-q",
        "--full-precision",
        folder=tmp_path,
        stdin=-1,
        stdout=subprocess.PIPE,
    )
    out, err = process.communicate(gzip.compress(text), timeout=60)
    assert (process.returncode, err) == (0, b"")
    (tmp_path / "out.csv").write_bytes(out)
    recovered(tmp_path / "out.csv")
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_nothing_behind(tmp_path, number):
    faces(400).to_csv(tmp_path / "faces.csv", index=False)
    (tmp_path / "out.csv").write_text("as it was")
    with (tmp_path / "faces.csv").open() as table:
        process = command(
            "recover", "-", "-o", "out.csv", "--report", "r.html", "--progress", "json", folder=tmp_path, stdin=table
        )
    while b"trials" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err.splitlines()[-1] == b"Interrupted; nothing was written."
    assert b"Traceback" not in err
    assert (tmp_path / "out.csv").read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["faces.csv", "out.csv", "tmp"]
    assert not list((tmp_path / "tmp").iterdir())
