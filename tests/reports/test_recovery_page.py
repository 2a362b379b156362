"""The page about a recovery: whole, harmless whatever the names are, small, and without empty sections."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from hidldl.reports.recovery_page import Facts, recovery_page
from hidldl.reports.svg import Scale
from hidldl.selection import LOST, Selection
from recovered import HOSTILE, a_selection, a_summary, some_facts

VOID = {"meta", "input", "br", "img", "link", "hr"}


class Outline(HTMLParser):
    """Checks that elements are nested as they are closed, and keeps what the tests ask about."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.headings, self.elements = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="rows-data">(.*?)</script>', page, re.S)[1])


@pytest.mark.parametrize("m", [2, 7, 30, 50, 200])
@pytest.mark.parametrize(("n_rows", "rate"), [(1, 0.9), (2, 0.4), (40, 0), (40, 0.99), (1500, 0.4)])
def test_every_shape_is_well_formed_and_small(m, n_rows, rate):
    page = recovery_page(a_summary(n_rows, [f"label {j}" for j in range(m)], rate=rate), some_facts(level=0.9))
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(outline.headings, outline.headings[1:], strict=False))
    assert len(page.encode()) < 1_000_000
    assert not re.search(
        r"\b(nan|inf|None|Undefined)\b", page.split('<script type="application/json"')[0].split("</style>")[1]
    )
    links = {
        attrs["href"][1:] for tag, attrs in outline.elements if tag == "a" and not attrs["href"].startswith("#row=")
    }
    assert links <= set(outline.ids)


def test_nothing_is_asked_of_the_network():
    page = recovery_page(a_summary(40, list("abcd")), some_facts(level=0.9, selection=a_selection()))
    outline = Outline(page)
    assert "default-src 'none'" in page
    for tag, attrs in outline.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "action", "data"} & set(attrs)
        assert attrs.get("href", "#").startswith("#")
    assert not re.search(r"@import|url\(|https?:", page)


def test_hostile_names_are_only_text():
    names = [HOSTILE[i % len(HOSTILE)] for i in range(40)]
    summary = a_summary(40, HOSTILE, names=names)
    page = recovery_page(summary, Facts(HOSTILE[1], HOSTILE[0], {HOSTILE[0]: HOSTILE[1]}, 1, HOSTILE[1], HOSTILE))
    page.encode("utf-8")
    outline = Outline(page)
    assert sum(tag == "script" for tag, _ in outline.elements) == 2
    assert not any(tag == "img" for tag, _ in outline.elements)
    assert not any(key.startswith("on") for _, attrs in outline.elements for key in attrs)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)
    assert "{{ 7 * 7 }}" in page
    shown = embedded(page)
    assert shown["labels"][:3] == list(HOSTILE[:3])
    assert shown["labels"][3] == "control␀␇␛\ufffd"
    assert shown["rows"][1][1] == HOSTILE[1]


def test_the_picker_holds_the_rows():
    summary = a_summary(30, list("abcde"))
    rows = embedded(recovery_page(summary, some_facts(level=0.9)))["rows"]
    assert [row[0] for row in rows] == list(range(1, 31))
    for row, D, observed, handed_in in zip(
        rows, summary.rows.distributions, summary.rows.observed, summary.rows.D_obs, strict=True
    ):
        assert [value is not None for value in row[3]] == observed.tolist()
        np.testing.assert_allclose(np.array(row[3], float) / 1000, handed_in, atol=0.00051)
        np.testing.assert_allclose(np.array(row[4]) / 1000, D, atol=0.00051)
        np.testing.assert_allclose(np.array(row[5]) / 1000, 0.8 * D, atol=0.00051)


def test_rows_that_lost_most_lead_to_the_picker_even_where_it_holds_few():
    page = recovery_page(a_summary(1500, [f"label {j}" for j in range(200)]), some_facts(level=0.9))
    linked = {int(number) for number in re.findall(r'href="#row=(\d+)"', page)}
    held = {row[0] for row in embedded(page)["rows"]}
    assert len(linked) == 20
    assert linked <= held
    assert len(held) < 200


@pytest.mark.parametrize(
    ("n_rows", "m", "rate", "absent"),
    [
        (40, 5, 0, ["answers", "overall", "labels", "together", "lost"]),
        (1, 5, 0.9, ["overall", "labels", "together", "lost", "map"]),
        (40, 2, 0.5, ["together", "map"]),
        (40, 5, 0.5, []),
    ],
)
def test_sections_with_nothing_to_show_are_left_out(n_rows, m, rate, absent):
    ids = set(Outline(recovery_page(a_summary(n_rows, list("abcde"[:m]), rate=rate), some_facts())).ids)
    sections = {"answers", "overall", "labels", "together", "lost", "map"}
    assert sections - ids == set(absent)
    assert {"rows", "run"} <= ids
    assert not {"parameters", "convergence"} & ids


def test_without_anything_hidden_it_says_so():
    page = recovery_page(a_summary(9, list("abc"), rate=0), some_facts())
    assert "<h1>Nothing was hidden</h1>" in page


def test_labels_that_are_overlooked_together_are_named():
    page = recovery_page(a_summary(400, ["joy", "fear", "anger", "shame"], together=True), some_facts())
    answer = re.search(r"<dt>Which together\?</dt>\s*<dd>(.*?)</dd>", page, re.S)[1]
    assert "joy" in answer
    assert "fear" in answer
    assert "anger" not in answer
    independent = recovery_page(a_summary(400, ["joy", "fear", "anger", "shame"]), some_facts())
    assert "No two labels are hidden together clearly more than by chance." in independent


def test_the_selection_is_drawn_along_each_parameter():
    selection = a_selection()
    page = recovery_page(a_summary(40, list("abc")), some_facts(selection=selection))
    assert f"Confidence {100 * selection.confidence:.0f}\u00a0%" in page
    assert "Excess loss for 3 values of alpha; 4 was chosen." in page
    assert "Excess loss for 2 values of scale; no was chosen." in page
    for excess in selection.candidates["excess"]:
        assert f"{excess:+.2g} ±".replace("-", "−") in page or excess == 0


def page_about(candidates, losses, chosen):
    """The page about a selection with these losses, the same in each row."""
    rows = np.tile(np.array(losses, float)[:, None], 20)
    selection = Selection.of(candidates, rows, chosen, "canberra", np.random.default_rng(0))
    return recovery_page(a_summary(9, list("abc")), some_facts(selection=selection))


def candidate_rows(page):
    """Classes and cells of the table of candidates."""
    body = re.search(r'aria-label="Candidates".*?<tbody>(.*?)</tbody>', page, re.S)[1]
    return [(css, re.findall("<td>(.*?)</td>", cells)) for css, cells in re.findall(r"<tr(.*?)>(<td>.*?)</tr>", body)]


def test_a_candidate_that_diverged_does_not_flatten_the_curve():
    page = page_about([{"alpha": 1.0}, {"alpha": 4.0}, {"alpha": 16.0}], [0.3, 0.2, LOST], 1)
    assert "Excess loss for 2 values of alpha" in page
    assert "The choice is clear. 1 candidate diverged and is not drawn." in page
    assert candidate_rows(page)[-1] == ("", ["16", "diverged", ""])


def test_a_large_loss_alone_is_no_divergence():
    page = page_about([{"alpha": 1.0}, {"alpha": 4.0}], [300, 200], 1)
    assert "Excess loss for 2 values of alpha" in page
    assert "diverged" not in page


def test_where_all_diverged_the_choice_is_still_marked():
    page = page_about([{"alpha": 1.0}, {"alpha": 4.0}], [LOST, LOST], 1)
    assert "Excess loss for" not in page
    assert "2 candidates diverged and are not drawn" in page
    assert candidate_rows(page)[1] == (' class="chosen-row"', ["4", "diverged", "chosen"])


@pytest.mark.parametrize(
    ("values", "chosen", "text"),
    [([5, 10, None], 2, "None"), ([5, 10, None], 0, "5"), ([True, "auto", None], 1, "auto"), ([False, True], 0, "no")],
)
def test_a_choice_of_any_kind_is_marked_and_drawn(values, chosen, text):
    page = page_about([{"k": value, "other": None} for value in values], range(len(values)), chosen)
    assert f"Excess loss for {len(values)} values of k; {text} was chosen." in page
    assert page.count('<path class="chosen"') == 1
    marked = [cells for css, cells in candidate_rows(page) if css]
    assert marked == [[text, "None", f"{chosen:.5g}", "chosen"]]
    assert ">nan<" not in page


def test_convergence_has_a_logarithmic_scale_where_it_can():
    history = {"gap": np.geomspace(1, 1e-4, 30), "evidence": -np.geomspace(9, 3, 30)}
    page = recovery_page(a_summary(9, list("abc")), some_facts(history=history, converged=False))
    assert page.count("log scale") == 1
    assert "gap, at the end 0.0001" in page
    assert "Stopped after 30 iterations before it converged" in page


def test_a_selection_of_one_candidate_has_no_curve():
    table = pd.DataFrame({"alpha": [1.0], "loss": [0.1], "excess": [0.0], "standard_error": [np.inf]})
    page = recovery_page(
        a_summary(9, list("abc")), some_facts(selection=Selection("kl", table, {"alpha": 1.0}, 1.0, 9))
    )
    assert "Excess loss for" not in page
    assert "Confidence 100" in page


@pytest.mark.parametrize(
    ("low", "high", "log"), [(0, 1, False), (-0.003, 0.02, False), (7, 7.5, False), (1e-6, 3, True), (2, 3, True)]
)
def test_ticks_are_few_round_and_on_the_axis(low, high, log):
    scale = Scale(low, high, log)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 7
    assert all(-1e-9 <= scale.at(tick) <= 1 + 1e-9 for tick in ticks)
    assert all(float(f"{tick:.3g}") == pytest.approx(tick) for tick in ticks)
