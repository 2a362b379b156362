"""Columns that are no labels come back as they came: texts as they stand in the file, values with their types."""

import csv
import datetime
import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hidldl import TableError, hide_labels, make_distributions, recover_table
from hidldl.tables import delimited, recovery, results
from hidldl.tables.planning import assign_roles
from hidldl.tables.reading import open_table, table_of

LABELS = ["joy", "fear", "anger"]
N_ROWS = 60
BIG = [2**53 + 1 + 2 * i for i in range(N_ROWS)]
HOW = {"labels": LABELS, "method": "meanfill"}


def shares() -> pd.DataFrame:
    data = make_distributions(n_rows=N_ROWS, n_features=1, n_labels=3, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.4, random_state=0)
    return pd.DataFrame(np.where(observed, D_obs, np.nan), columns=LABELS)


TEXTS = {
    "face": [f"{i:03d}" for i in range(N_ROWS)],
    "big": [str(number) for number in BIG],
    "zip": [f"{7 * i % 100:05d}" for i in range(N_ROWS)],
    "price": [f"{i / 10:.2f}" for i in range(N_ROWS)],
    "flag": ["True", "False", ""] * 20,
    "gap": ["", "7", "08", "?"] * 15,
    "odd": ["1e3", "+5", " 6 ", ".50", "5.", "-0"] * 10,
    "votes": ["1,234", "12,345.5", "7"] * 20,
    "rate": ["45 %", "0%"] * 30,
    "when": ["2024-01-01", "2024-01-02 10:00"] * 30,
    "word": ["NA", "yes", "No", ""] * 15,
    "note": [f'a "{i}",\nb' for i in range(N_ROWS)],
}


def write_texts(path: Path, delimiter: str = ",") -> None:
    cells = pd.DataFrame(TEXTS).join(shares().astype(str).replace("nan", ""))
    cells.to_csv(path, index=False, sep=delimiter)


def read_texts(path: Path, delimiter: str = ",") -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("at_once", [10**6, 20], ids=["as a whole", "streamed"])
@pytest.mark.parametrize(("source", "target"), [("t.csv", "o.csv"), ("t.csv.gz", "o.tsv"), ("t.tsv", "o.csv.gz")])
def test_texts_stay_as_they_stand_in_the_file(tmp_path, monkeypatch, source, target, at_once):
    monkeypatch.setattr(recovery, "AT_ONCE", at_once)
    monkeypatch.setattr(results, "CHUNK_ROWS", 7)
    monkeypatch.setattr(recovery, "CHUNK_ROWS", 7)
    monkeypatch.setattr(delimited, "CHUNK_BYTES", 100)
    write_texts(tmp_path / source, "\t" if ".tsv" in source else ",")
    result = recover_table(tmp_path / source, **{**HOW, "method": "bayes"}, parameters={"nu": 10, "ridge": 1})
    result.write(tmp_path / target)
    written = pd.read_csv(
        tmp_path / target, sep="\t" if source == "t.tsv" or ".tsv" in target else ",", dtype=str, keep_default_na=False
    )
    assert {name: written[name].tolist() for name in TEXTS} == TEXTS


def test_texts_stay_beside_decimal_commas_and_rows_left_out(tmp_path):
    frame = shares()
    frame.insert(0, "size", [f"{i:02d},50" for i in range(N_ROWS)])
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[3] = "99,990;0,9;0,9;0,9"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    result = recover_table(tmp_path / "t.csv", **HOW, skip_bad_rows=True)
    result.write(tmp_path / "o.csv")
    expected = [size for i, size in enumerate(frame["size"]) if i != 2]
    assert read_texts(tmp_path / "o.csv", ";")["size"] == expected
    assert result.frame["size"].tolist() == [float(size.replace(",", ".")) for size in expected]


def test_values_of_texts_have_every_digit(tmp_path):
    write_texts(tmp_path / "t.csv")
    result = recover_table(tmp_path / "t.csv", **HOW)
    frame = result.frame
    assert frame["face"].tolist() == TEXTS["face"]
    assert (frame["big"].dtype, frame["big"].tolist()) == ("int64", BIG)
    assert (frame["price"].dtype, frame["flag"].dtype, frame["gap"].dtype) == ("float64", "boolean", "Int64")
    assert frame["flag"][:3].tolist() == [True, False, pd.NA]
    assert frame["gap"][:3].fillna(-1).tolist() == [-1, 7, 8]
    assert frame["votes"][:3].tolist() == [1234, 12345.5, 7]
    assert frame["word"][:3].tolist() == ["NA", "yes", "No"]
    result.write(tmp_path / "o.parquet")
    back = pd.read_parquet(tmp_path / "o.parquet")
    assert (back["big"].dtype, back["big"].tolist()) == ("int64", BIG)
    assert back["flag"].dtype == "boolean"
    result.write(tmp_path / "o.xlsx")
    with open_table(tmp_path / "o.xlsx") as table:
        again = table.read(as_text=["face", "big", "flag"])
    assert [again[name].fillna("").tolist() for name in ("face", "big", "flag")] == [
        TEXTS[name] for name in ("face", "big", "flag")
    ]


def typed() -> pd.DataFrame:
    times = pd.Series(pd.date_range("2024-01-01", periods=N_ROWS, freq="h"))
    return pd.DataFrame(
        {
            "id": BIG,
            "big": BIG[::-1],
            "small": np.arange(N_ROWS, dtype=np.int8),
            "unsigned": np.array([2**64 - 1 - i for i in range(N_ROWS)], dtype=np.uint64),
            "gap": pd.array([pd.NA] * 20 + BIG[20:], dtype="Int64"),
            "full": pd.array(BIG, dtype="Int64"),
            "single": np.linspace(0, 1, N_ROWS, dtype=np.float32),
            "flag": [True, False] * 30,
            "maybe": pd.array([pd.NA, True, False] * 20, dtype="boolean"),
            "time": times,
            "zone": times.dt.tz_localize("Europe/Berlin"),
            "lasts": times - times[0],
            "text": [None] * 20 + ["x", "y"] * 20,
        }
    ).join(shares())


KEPT = [name for name in typed() if name not in LABELS]


def test_a_data_frame_keeps_its_values_and_types():
    odd = {
        "kind": pd.Categorical(["u", "v"] * 30, categories=["v", "u"]),
        "month": pd.period_range("2024-01", periods=N_ROWS, freq="M"),
        "thin": pd.arrays.SparseArray([0.0, 1.0] * 30),
        "mixed": [1, "a", None, [2]] * 15,
        "phase": np.arange(N_ROWS) * 1j,
    }
    frame = typed().assign(**odd)
    result = recover_table(frame, **HOW)
    pd.testing.assert_frame_equal(result.frame[[*KEPT, *odd]], frame[[*KEPT, *odd]])
    by_name = recover_table(frame.set_index("id"), **HOW).frame
    pd.testing.assert_frame_equal(by_name[KEPT[1:]], frame.set_index("id")[KEPT[1:]])


@pytest.mark.parametrize("rows", [7, 10**6])
def test_parquet_keeps_its_values_and_types(tmp_path, monkeypatch, rows):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for module in (results, recovery):
        monkeypatch.setattr(module, "CHUNK_ROWS", rows)
    days = [None] * 20 + [datetime.date(2024, 1, 1)] * 40
    prices = [None] * 20 + [decimal.Decimal("1.50")] * 40
    table = pa.Table.from_pandas(typed(), preserve_index=False)
    table = table.append_column("day", pa.array(days)).append_column("price", pa.array(prices, pa.decimal128(9, 2)))
    pq.write_table(table, tmp_path / "t.parquet")
    result = recover_table(tmp_path / "t.parquet", **HOW)
    result.write(tmp_path / "o.parquet")
    back = pq.read_table(tmp_path / "o.parquet")
    for name in [*KEPT, "day", "price"]:
        assert back[name].to_pylist() == table[name].to_pylist()
        expected = pa.string() if name == "text" else table.schema.field(name).type
        assert back.schema.field(name).type == expected
    frame, kept = pd.read_parquet(tmp_path / "o.parquet"), KEPT[:-1]
    pd.testing.assert_frame_equal(frame[kept], pd.read_parquet(tmp_path / "t.parquet")[kept])
    pd.testing.assert_frame_equal(result.frame[kept], frame[kept])


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.xlsx"])
def test_every_format_takes_every_type(tmp_path, name):
    frame = typed().assign(
        mixed=[1, "a", None, [2]] * 15,
        phase=np.arange(N_ROWS) * 1j,
        thin=pd.arrays.SparseArray([0.0, 1.0] * 30),
        kind=pd.Categorical(["u", None] * 30),
    )
    recover_table(frame, **HOW).write(tmp_path / name)
    with open_table(tmp_path / name) as table:
        back = table.read(as_text=["big", "mixed", "time", "kind"])
    assert back["big"].tolist() == [str(number) for number in frame["big"]]
    assert back["mixed"].fillna("").tolist() == ["1", "a", "", "[2]"] * 15
    assert back["kind"].fillna("").tolist() == ["u", ""] * 30
    assert back["time"].str.startswith("2024-01-01 00:00:00").tolist() == [True] + [False] * 59
    assert back["thin"].tolist() == [0, 1] * 30


def test_a_workbook_keeps_texts_times_and_truths(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    frame = shares()
    frame.insert(0, "code", [f"{i % 9:03d}" for i in range(N_ROWS)])
    frame.insert(1, "time", pd.date_range("2024-01-01", periods=N_ROWS, freq="D"))
    frame.insert(2, "flag", [True, False] * 30)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    recover_table(tmp_path / "t.xlsx", **HOW).write(tmp_path / "o.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "o.xlsx").active.iter_rows(values_only=True))
    assert rows[2][:3] == ("001", datetime.datetime(2024, 1, 2), False)


def test_a_file_that_changed_is_not_mixed_with_what_was_recovered(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    typed().to_parquet(path)
    result = recover_table(path, **HOW)
    typed()[:50].to_parquet(path)
    with pytest.raises(TableError, match="has changed while it was read"):
        _ = result.frame


def test_a_file_that_is_gone_is_missed_only_for_the_columns_to_keep(tmp_path):
    path = tmp_path / "t.csv.gz"
    write_texts(path)
    result = recover_table(path, **HOW)
    path.unlink()
    with pytest.raises(TableError, match="no longer there"):
        _ = result.frame
    result.write(tmp_path / "o.csv", keep="none")
    assert pd.read_csv(tmp_path / "o.csv").columns.tolist() == [*LABELS, "hidden_mass"]


# Whole numbers that floats cannot tell apart.


@pytest.mark.parametrize("as_text", [False, True], ids=["DataFrame", "file"])
def test_long_numbers_are_told_apart(tmp_path, as_text):
    start = 1234567890123456000
    frame = pd.DataFrame({"tweet": range(start, start + N_ROWS), "twin": start}).join(shares())
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = open_table(tmp_path / "t.csv") if as_text else table_of(frame)
    tweet, twin, *_ = columns = table.scan()
    assert (tweet.n_distinct, twin.n_distinct, tweet.whole) == (N_ROWS, 1, True)
    assert table.first_rows["tweet"].tolist() == frame["tweet"].tolist()
    assert assign_roles("t", columns, table.first_rows, labels=LABELS).row_names == "tweet"
    assert not table.notes
    roles = assign_roles("t", columns, table.first_rows, labels=LABELS, row_names=False)
    assert dict(roles.left_out) == {
        "tweet": "its numbers are too long to be told apart as a feature",
        "twin": "it is the same in every row",
    }


def test_long_numbers_count_once_however_they_are_written(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1e20,123456789012345678\n100000000000000000000,\n1E+20,123456789012345679\n")
    with open_table(tmp_path / "t.csv") as table:
        assert [(column.kind, column.n_distinct) for column in table.scan()] == [("number", 1), ("number", 2)]
        assert not table.notes
        values = next(table.originals(["a", "b"]))
    assert (values["a"].dtype, values["b"].dtype) == ("float64", "Int64")
    assert values["b"].fillna(0).tolist() == [123456789012345678, 0, 123456789012345679]


# Bounds.


@pytest.mark.parametrize("unit", ["shares", "percent"])
def test_what_is_written_lies_in_its_interval(tmp_path, unit):
    frame = shares().assign(x=np.random.default_rng(0).random(N_ROWS))
    how = {"labels": LABELS, "parameters": {"nu": 1e5, "ridge": 1, "width": 1, "n_components": 1}}
    recover_table(frame, **how, intervals=0.01).write(tmp_path / "o.csv", unit=unit)
    out = pd.read_csv(tmp_path / "o.csv")
    for name in [*LABELS, "hidden_mass"]:
        assert (out[f"{name}_low"] <= out[name]).all()
        assert (out[name] <= out[f"{name}_high"]).all()
