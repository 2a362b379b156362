"""Features as numbers without gaps."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hidldl.errors import TableError
from hidldl.tables.columns import Tally
from hidldl.tables.numbers import FeatureEncoding

FRAME = pd.DataFrame(
    {"x": [1.0, 2.0, np.nan, 10.0], "y": [1.0, 2.0, 3.0, 4.0], "genre": ["b", "a", np.nan, "b"]}, dtype=object
).astype({"x": float, "y": float})
COLUMNS = (("x", "y"), ("genre",))


def test_medians_marks_and_indicators():
    encoding = FeatureEncoding.of(FRAME, *COLUMNS)
    assert encoding(FRAME).tolist() == [
        [1, 1, 0, 0, 1],
        [2, 2, 0, 1, 0],
        [2, 3, 1, 0, 0],  # the median of 1, 2 and 10; marked; no genre
        [10, 4, 0, 0, 1],
    ]
    assert encoding.n_columns == 5
    assert encoding.columns == ("x", "y", "genre")
    said = " ".join(encoding.describe())
    assert "'x'" in said
    assert "'genre' (2)" in said


def test_new_rows_may_lack_what_the_fitted_ones_had():
    encoding = FeatureEncoding.of(FRAME, *COLUMNS)
    new = pd.DataFrame({"genre": ["unknown", "1"], "y": [np.nan, 7.0], "x": [np.nan, 5.0]})
    assert encoding(new).tolist() == [[2, 2.5, 1, 0, 0], [5, 7, 0, 0, 0]]


def test_a_column_that_is_empty_in_the_sample():
    encoding = FeatureEncoding.of(FRAME.assign(x=np.nan), *COLUMNS)
    assert np.isfinite(encoding(FRAME.assign(x=np.nan))).all()


def test_tables_that_do_not_fit_the_model_are_refused():
    encoding = FeatureEncoding.of(FRAME, *COLUMNS)
    tally = Tally(("x", "genre"))
    tally.add(pd.DataFrame({"x": ["1", "2", "3", "4", "5", "many"], "genre": ["a"] * 6}))
    columns = {column.name: column for column in tally.columns()}
    with pytest.raises(TableError, match=r"new.csv has no column 'y', which the model needs; add it, even if empty"):
        encoding.refuse_missing("new.csv", columns)
    with pytest.raises(TableError, match=r"'x' of new.csv holds text \('many' in row 5\); the model needs numbers"):
        encoding.refuse_missing("new.csv", {**columns, "y": columns["genre"]})


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(-1e9, 1e9) | st.none(), st.sampled_from(["a", "b", None])), min_size=1))
def test_rows_are_encoded_one_by_one(rows):
    """What a row becomes does not depend on the rows around it."""
    frame = pd.DataFrame(
        {"x": np.array([x for x, _ in rows], float), "genre": np.array([g for _, g in rows], object)}
    ).assign(y=1.0)
    encoding = FeatureEncoding.of(frame, *COLUMNS)
    X = encoding(frame)
    assert np.isfinite(X).all()
    assert X.shape == (len(rows), encoding.n_columns)
    alone = [encoding(frame.iloc[i : i + 1])[0] for i in range(len(rows))]
    assert np.array_equal(X, alone)
