"""What a notebook shows of a result."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators import RECOVERERS
from hidldl import BayesHidLDL, HidLDL, MeanFill, Selection
from hidldl.notebook import CANDIDATES_SHOWN, ROWS_NAMED, rows_that_lost_most
from hidldl.selection import LOST

pytestmark = pytest.mark.usefixtures("short_search")

every_recoverer = pytest.mark.parametrize("kind", RECOVERERS, ids=lambda kind: kind.__name__)
HOSTILE = "<script>alert('x')</script>"


def rows_of(html):
    """The rows of the last table, as lists of what its cells say."""
    body = html[html.rindex("<tbody>") :]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.S)
    return [[unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


def selection_of(n_candidates, chosen):
    losses = np.tile(np.arange(n_candidates, dtype=float)[:, None], 20)
    candidates = [{"alpha": 2.0**k, "kernel": None if k % 2 else HOSTILE} for k in range(n_candidates)]
    return Selection.of(candidates, losses, chosen, "kl", np.random.default_rng(0))


@every_recoverer
def test_the_result_follows_scikit_learns_diagram(kind, hidden):
    unfitted = kind()
    assert "rows × labels" not in unfitted._repr_html_()
    model = kind().fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in html
        assert html.count("60 × 5") == 1
        assert f"{1 - hidden.observed.mean():.1%} of all shares" in html
        assert f"{np.mean(model.hidden_mass_):.3f} of a row" in html
        assert [int(name) for name, _ in rows_of(html)] == np.argsort(-model.hidden_mass_, kind="stable")[
            :ROWS_NAMED
        ].tolist()


def test_text_stays_text_where_scikit_learn_is_set_to_it(hidden):
    model = MeanFill().fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


@pytest.mark.parametrize("shown", ["alone", "in a pipeline"])
def test_showing_a_model_does_no_work(hidden, shown):
    """scikit-learn lists fitted attributes by reading them, and some are computed when first read."""
    path = HidLDL(random_state=0).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    bayes = BayesHidLDL(n_components=1, random_state=0).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    for model in (path, bayes):
        (model if shown == "alone" else make_pipeline(StandardScaler().fit(hidden.X), model))._repr_html_()
    assert path._follower._training is not None
    assert bayes._calibration is None


def test_names_are_escaped():
    frame = pd.DataFrame([[0.5, 0.5, 0], [0.3, 0.3, 0.4]], index=[HOSTILE, "b"], columns=[HOSTILE, "y", "z"])
    html = MeanFill().fit(np.zeros((2, 1)), frame, observed=frame > 0)._repr_html_()
    assert "<script>alert" not in html
    assert HOSTILE in [row[0] for row in rows_of(html)]
    selected = selection_of(4, 0)._repr_html_()
    assert "<script>alert" not in selected
    assert [row[1] for row in rows_of(selected)] == [HOSTILE, "None", HOSTILE, "None"]


def test_the_rows_that_lost_most():
    assert rows_that_lost_most(np.array([0.1, 0.0, 0.4, 0.0]), 3).to_dict() == {2: 0.4, 0: 0.1}


def test_nothing_hidden_names_no_row():
    html = MeanFill().fit(np.zeros((2, 1)), np.full((2, 2), 0.5))._repr_html_()
    assert "0.0% of all shares" in html
    assert "lost most" not in html


@pytest.mark.parametrize("chosen", [0, 1, 14])
def test_a_selection_marks_the_choice_even_if_it_is_far_down(chosen):
    selection = selection_of(15, chosen)
    html = selection._repr_html_()
    rows = rows_of(html)
    shown = CANDIDATES_SHOWN + (chosen >= CANDIDATES_SHOWN)
    assert len(rows) == shown
    assert f"and {15 - shown} more" in html
    assert [row[0] for row in rows if row[-1] == "chosen"] == [f"{2.0**chosen:.4g}"]


def test_a_candidate_that_diverged_is_marked():
    losses = np.array([[0.1] * 20, [LOST] * 20])
    selection = Selection.of([{"alpha": 1.0}, {"alpha": 64.0}], losses, 0, "kl", np.random.default_rng(0))
    assert selection.diverged.tolist() == [False, True]
    assert rows_of(selection._repr_html_())[1] == ["64", "diverged", "", "", ""]
