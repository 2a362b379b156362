"""A summary tells the truth about a table, however the table was cut."""

from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hidldl.reports.label_map import label_map
from hidldl.reports.reannotation import ListOptions
from hidldl.reports.summary import Summarizer


def a_table(n_rows, m, seed=0, rate=0.4):
    rng = np.random.default_rng(seed)
    D = rng.dirichlet(np.ones(m), size=n_rows)
    observed = rng.random((n_rows, m)) > rate
    observed[np.arange(n_rows), rng.integers(m, size=n_rows)] = True
    handed_in = np.where(observed, D, 0)
    handed_in /= handed_in.sum(axis=1, keepdims=True)
    return [[f"row {i}" for i in range(n_rows)], np.where(observed, handed_in, np.nan), observed, D, D * 0.9, D * 1.1]


def summarised(table, cuts=(), **options):
    summarizer = Summarizer([f"label {j}" for j in range(table[1].shape[1])], **options)
    for start, stop in zip((0, *cuts), (*cuts, len(table[0])), strict=True):
        summarizer.add(*(part[start:stop] for part in table))
    return summarizer.finish()


def assert_same(first, second):
    for field in fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, pd.DataFrame):
            pd.testing.assert_frame_equal(a, b, check_exact=True)
        elif is_dataclass(a):
            assert_same(a, b)
        else:
            np.testing.assert_array_equal(a, b)


def test_counts_and_means():
    names, D_obs, observed, D, *_ = table = a_table(50, 4)
    summary = summarised(table)
    hidden = ~observed
    assert (summary.n_rows, summary.n_complete) == (50, observed.all(axis=1).sum())
    np.testing.assert_array_equal(summary.hidden_counts, hidden.sum(axis=0))
    assert summary.both_hidden[1, 3] == (hidden[:, 1] & hidden[:, 3]).sum()
    np.testing.assert_allclose(summary.hidden_mass, np.where(hidden, D, 0).mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(summary.mean_handed_in, np.nan_to_num(D_obs).mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(summary.mean_recovered, D.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(summary.mean_when_hidden[2], D[hidden[:, 2], 2].mean(), atol=1e-8)
    assert summary.rows.names == tuple(names)
    np.testing.assert_array_equal(summary.rows.D_obs, D_obs)


def test_hidden_mass_lies_in_the_right_bin():
    D = np.array([[1.0, 0.0], [0.95, 0.05], [0.0, 1.0], [0.501, 0.499]])
    observed = np.array([[True, True], [True, False], [True, False], [True, False]])
    summary = summarised((list("abcd"), np.where(observed, 1.0, np.nan), observed, D))
    assert {bin: count for bin, count in enumerate(summary.mass_histogram) if count} == {0: 1, 1: 1, 9: 1, 19: 1}


def test_overlooked_together_is_the_correlation():
    table = a_table(200, 5, seed=1)
    hidden = ~table[2]
    np.testing.assert_allclose(summarised(table).overlooked_together, np.corrcoef(hidden.T), atol=1e-12)


def test_labels_always_or_never_hidden_correlate_with_nothing():
    observed = np.array([[True, False, True], [True, False, False], [True, False, True]])
    D = np.full((3, 3), 1 / 3)
    together = summarised((list("abc"), np.where(observed, D, np.nan), observed, D)).overlooked_together
    assert np.isnan(together[0]).all()
    assert np.isnan(together[:, 1]).all()
    assert together[2, 2] == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(
    n_rows=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    most_rows=st.integers(1, 70),
    n_listed=st.integers(1, 9),
    seed=st.integers(0, 5),
)
def test_where_the_table_is_cut_does_not_matter(n_rows, cuts, most_rows, n_listed, seed):
    table = a_table(n_rows, 3, seed)
    table[2][::7] = False
    table.append([f"group {i % 4}" for i in range(n_rows)])
    cuts = sorted(min(cut, n_rows) for cut in cuts)
    options = {"most_rows": most_rows, "random_state": seed, "reannotation": ListOptions(most_rows=n_listed)}
    assert_same(summarised(table, **options), summarised(table, cuts, **options))


def test_rows_without_any_label_do_not_make_labels_look_alike():
    names, D_obs, observed, D, *_ = a_table(200, 5, seed=1)
    blank = np.arange(200) < 120
    observed[blank] = False
    together = summarised((names, D_obs, observed, D)).overlooked_together
    np.testing.assert_allclose(together, np.corrcoef(~observed[~blank].T), atol=1e-12)


def test_the_sample_holds_the_rows_to_annotate_again_and_a_fair_draw():
    table = a_table(3000, 4, seed=2)
    table[2][::100] = False
    mass = np.where(table[2], 0, table[3]).sum(axis=1)
    uncertainty = np.where(table[2].any(axis=1), 0.2 * mass, 0)
    rows = summarised(table, most_rows=500).rows
    assert len(rows) <= 500
    assert set(np.argsort(-uncertainty)[:80] + 1) <= set(rows.numbers)
    assert set(np.arange(1, 2000, 100)) <= set(rows.numbers)
    assert rows.in_sample.sum() == 400
    assert rows.hidden_mass[rows.in_sample].mean() == pytest.approx(mass.mean(), abs=4 * mass.std() / 20)
    for position in (0, 77, len(rows) - 1):
        i = rows.numbers[position] - 1
        assert rows.names[position] == f"row {i}"
        np.testing.assert_array_equal(rows.high[position], table[5][i])
    fewer = rows.fewer(50, 10)
    assert len(fewer) == len(set(fewer.numbers)) == 50
    assert set(np.argsort(-uncertainty)[:8] + 1) <= set(fewer.numbers)


def test_the_draw_is_uniform():
    table = a_table(20, 2, rate=0)
    counts = np.zeros(21)
    for seed in range(400):
        rows = summarised(table, most_rows=10, random_state=seed).rows
        counts[rows.numbers[rows.in_sample]] += 1
    assert counts[0] == 0
    assert np.abs(counts[1:] - 160).max() < 5 * np.sqrt(400 * 0.4 * 0.6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({3: np.ones((5, 2)) / 2}, r"distributions has shape \(5, 2\), but there are 5 names and 3 labels"),
        ({3: np.full((5, 3), np.nan)}, "distributions is not a finite number in row 1, label 'label 0'"),
        ({1: np.full((5, 3), np.nan)}, "D_obs is not a finite number in row 1"),
    ],
)
def test_bad_chunks_are_refused(change, message):
    table = [change.get(position, part) for position, part in enumerate(a_table(5, 3))]
    summarizer = Summarizer(["label 0", "label 1", "label 2"])
    with pytest.raises(ValueError, match=message):
        summarizer.add(*table)


def test_bounds_for_some_chunks_only_are_refused():
    table = a_table(4, 3)
    summarizer = Summarizer("abc")
    summarizer.add(*table)
    with pytest.raises(ValueError, match="for every chunk or for none"):
        summarizer.add(*table[:4])


def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="no rows were added"):
        Summarizer("ab").finish()


def test_the_map_shows_the_spread_of_log_ratios():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 2)) @ np.array([[0.3, 0.28, -0.5], [0.1, 0.1, 0.0]])
    D = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    places = label_map(D)
    log_ratio = np.log(D[:, 0] / D[:, 2])
    assert np.linalg.norm(places.positions[0] - places.positions[2]) == pytest.approx(log_ratio.std(), rel=1e-9)
    assert sum(places.explained) == pytest.approx(1)


@pytest.mark.parametrize("D", [np.full((9, 2), 0.5), np.full((2, 5), 0.2), np.full((9, 5), 0.2)])
def test_no_map_from_nothing(D):
    assert label_map(D) is None
