"""Figures show the numbers they are given."""

import builtins

import numpy as np
import pytest

from hidldl.reports.figures import new_figure, recovery_figure

TRUE = np.array([0.5, 0.3, 0.2])
OBSERVED = np.array([True, True, False])
RECOVERED = np.array([0.45, 0.27, 0.28])


def heights(ax):
    return [bar.get_height() for bar in ax.patches]


def test_rows_and_errors():
    rows = {"first": (TRUE, np.array([0.625, 0.375, 0]), OBSERVED, RECOVERED)}
    figure = recovery_figure(rows, list("abc"), {"nothing": 0.2, "HidLDL": 0.1}, "title")
    assert heights(figure.axes[0]) == pytest.approx([*TRUE, 0.625, 0.375, 0, *RECOVERED])
    assert [bar.get_width() for bar in figure.axes[1].patches] == [0.2, 0.1]


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    real_import = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\[plot\]'"):
        new_figure(1, 1)
