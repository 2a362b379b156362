"""compare: methods side by side on a dataset of one's own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hidldl import MeanFill, compare, make_distributions
from hidldl import methods as registry
from hidldl.experiments import compare as module
from hidldl.experiments.protocol import Contender, registered_datasets
from hidldl.methods import register_method


@pytest.fixture
def data():
    return replace(make_distributions(n_rows=50, n_features=3, n_labels=4, random_state=0), name="Mine")


@pytest.fixture(autouse=True)
def _few_methods(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(module, "METHODS", tuple(c for c in module.METHODS if c.title in ("HidLDL", "MeanFill")))


def test_it_writes_files_and_returns_what_they_say(data, tmp_path):
    steps = []
    result = compare(data, tmp_path / "out", repetitions=2, measure="clark", progress=lambda *step: steps.append(step))
    assert steps[-1][:2] == (4, 4)
    means = result.comparisons["clark"].means
    assert set(means.columns) == {"HidLDL", "MeanFill"}
    listed = pd.read_csv(tmp_path / "out" / "comparison.csv").set_index("method")["mean"]
    assert listed["HidLDL"] == pytest.approx(means["HidLDL"].iloc[0])
    assert result.page == tmp_path / "out" / "index.html"
    assert "Methods compared on Mine" in result.page.read_text(encoding="utf-8")
    for name in ("comparison.md", "comparison.tex"):
        assert "HidLDL" in (tmp_path / "out" / name).read_text(encoding="utf-8")
    assert len(result.results) == 4


def test_a_dataset_that_changed_is_run_again_and_registers_nothing(data, tmp_path):
    first = compare(data, tmp_path, repetitions=1)
    turned = replace(data, distributions=np.asarray(data.distributions)[:, ::-1])
    second = compare(turned, tmp_path, repetitions=1)
    assert len(second.results) == 2
    key = first.results.set_index("method")["key"]
    assert (second.results.set_index("method")["key"] != key).all()
    assert "Mine" not in " ".join(registered_datasets())


def test_methods_of_users_take_part(data, tmp_path):
    register_method("fill", MeanFill(max_iter=3), title="My fill")
    assert "My fill" in compare(data, tmp_path, repetitions=1).comparisons["chebyshev"].means


@pytest.mark.parametrize(
    ("options", "message"), [({"measure": "accuracy"}, "measure must be"), ({"setting": "both"}, "setting must be")]
)
def test_it_refuses_what_it_does_not_know(data, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        compare(data, tmp_path, **options)


def test_it_wants_complete_rows_and_features(data, tmp_path):
    gap = np.array(data.distributions)
    gap[0, 0] = np.nan
    with pytest.raises(ValueError, match="Mine has empty cells in its label columns, first in row 1, column"):
        compare(replace(data, distributions=gap), tmp_path)
    named = pd.DataFrame(gap, index=[f"face {i}" for i in range(50)])
    with pytest.raises(ValueError, match=r"label columns, first in row 1 \(index 'face 0'\), column"):
        compare(replace(data, distributions=named), tmp_path)
    for row, message in (
        ([0.5, 0.5, 0.5, 0], r"row 2 of Mine sums to 1\.5"),
        ([0] * 4, "row 2 of Mine has no positive"),
    ):
        wrong = np.array(data.distributions)
        wrong[1] = row
        with pytest.raises(ValueError, match=message):
            compare(replace(data, distributions=wrong), tmp_path)
    features = np.array(data.features)
    features[3, 1] = np.nan
    with pytest.raises(
        ValueError, match=f"Mine .* feature columns, first in row 4, column '{data.feature_names[1]}'; fill"
    ):
        compare(replace(data, features=features), tmp_path)


def test_the_recommended_method_is_in_every_comparison():
    from hidldl.experiments.paper import METHODS, PAPER_TABLES, TABLES

    assert {"MeanFill", "BayesHidLDL"} <= {contender.title for contender in METHODS}
    assert sum(TABLES[number].contenders is METHODS for number in PAPER_TABLES) == 6
    assert all(isinstance(contender, Contender) for contender in METHODS)
