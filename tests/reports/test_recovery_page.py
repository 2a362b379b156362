"""The page about a recovery: whole, harmless whatever the names are, small, and without empty sections."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from hidldl.reports.pairs import remarks_on
from hidldl.reports.reannotation import ListOptions
from hidldl.reports.recovery_page import MOST_IN_LIST, MOST_WITHOUT, Facts, recovery_page
from hidldl.reports.summary import Summarizer
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


def embedded(page, what="rows"):
    return json.loads(re.search(rf'<script type="application/json" id="{what}-data">(.*?)</script>', page, re.S)[1])


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
    options = ListOptions(group_name=HOSTILE[0])
    summary = a_summary(40, HOSTILE, names=names, groups=names[::-1], without=[3], reannotation=options)
    page = recovery_page(summary, Facts(HOSTILE[1], HOSTILE[0], {HOSTILE[0]: HOSTILE[1]}, 1, HOSTILE[1], HOSTILE))
    page.encode("utf-8")
    outline = Outline(page)
    assert sum(tag == "script" for tag, _ in outline.elements) == 3
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
        np.testing.assert_allclose(np.array(row[7]) / 1000, 0.8 * D, atol=0.00051)


@pytest.mark.parametrize(("m", "n_in_list", "n_links"), [(200, 100, 100), (200, 900, 120), (9, 900, 200)])
def test_rows_to_annotate_again_lead_to_the_picker_where_it_holds_them(m, n_in_list, n_links):
    options = ListOptions(most_rows=n_in_list)
    summary = a_summary(1500, [f"label {j}" for j in range(m)], reannotation=options)
    page = recovery_page(summary, some_facts(level=0.9))
    links = {int(number) for number in re.findall(r'href="#row=(\d+)"', page)}
    in_picker = {row[0] for row in embedded(page)["rows"]}
    assert len(links) >= n_links
    assert links <= in_picker
    assert links <= set(summary.reannotation.rows["number"])
    assert page.count('<tr id="again-') == min(n_in_list, MOST_IN_LIST)
    assert len(page.encode()) < 1_000_000


def list_cells(page):
    """The cells of the list of rows to annotate again, as text."""
    body = re.search(r'<table id="again-table".*?</table>', page, re.S)[0]
    rows = re.findall(r'<tr id="again-\d+">(.*?)</tr>', body, re.S)
    cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S) for row in rows]
    return [[" ".join(re.sub("<.*?>", "", cell).split()) for cell in row] for row in cells]


def test_the_list_says_which_labels_to_ask_for():
    summary = a_summary(90, ["joy", "fear", "anger"], groups=["Ann", "Bob", ""] * 30, without=[4, 8])
    page = recovery_page(summary, some_facts(level=0.9))
    rows = summary.reannotation.rows
    shown = list_cells(page)
    assert [cells[0] for cells in shown] == rows["name"].tolist()
    assert [cells[1] for cells in shown] == rows["number"].astype(str).tolist()
    assert [cells[2] for cells in shown] == [group or "none" for group in rows["group"]]
    assert [cells[4] for cells in shown] == [f"{uncertainty:.3f}" for uncertainty in rows["uncertainty"]]
    best = rows.iloc[0]
    low, share, high = (f"{100 * best[name]:.1f}" for name in ("low_1", "share_1", "high_1"))
    assert shown[0][5].startswith(f"{best['label_1']} {share} % ({low}–{high} %)")
    assert page.index("Rows without any label: ask for all") > page.index(f'id="again-{rows["number"].iloc[-3]}"')
    assert page.index("Rows without any label: ask for all") < page.index('id="again-5"')
    assert "It stands in for the width of intervals" not in page


def test_the_file_of_the_page_is_the_list():
    names = [HOSTILE[i % 3] + ",\n" for i in range(40)]
    summary = a_summary(40, HOSTILE, names=names, groups=["=1+1"] * 40)
    parts = embedded(recovery_page(summary, some_facts(level=0.9)), "again")
    lines = list(csv.reader(io.StringIO(parts["header"] + "".join(parts["lines"]), newline="")))
    frame = summary.reannotation.frame()
    assert lines[0] == list(frame)
    assert lines[1:] == [[str(value) for value in row] for row in frame.to_numpy().tolist()]


def test_without_intervals_the_list_says_what_stands_in():
    page = recovery_page(a_summary(40, ["joy", "fear", "anger"], bounds=False), some_facts())
    assert "It stands in for the width of intervals" in page
    assert re.fullmatch(r"\w+ \d+\.\d %(, \w+ \d+\.\d %)*", list_cells(page)[0][-1])


@pytest.mark.parametrize("n_rows", [1, 2, 60])
def test_a_table_without_any_label_is_shown_too(n_rows):
    summary = a_summary(n_rows, ["joy", "fear", "anger"], without=range(n_rows))
    page = recovery_page(summary, some_facts(level=0.9))
    Outline(page)
    assert f"<h1>{n_rows} row{'s' * (n_rows > 1)} predicted from" in page
    assert "No row has a label" in page
    assert not re.search(
        "inflated|overlooked|hidden mass of a row", re.sub(r"<script.*?</script>", "", page, flags=re.S)
    )
    assert page.count('<tr id="again-') == (min(n_rows, MOST_WITHOUT) if n_rows > 1 else 0)
    assert embedded(page)["first"] == 1


def test_groups_are_compared():
    summary = a_summary(90, ["joy", "fear", "anger"], groups=["Ann", "Bob", "Chris"] * 30)
    page = recovery_page(summary, some_facts(level=0.9))
    body = re.search(r'<table id="group-table".*?<tbody>(.*?)</tbody>', page, re.S)[1]
    assert re.findall(r"<bdi.*?>(.*?)</bdi>", body) == summary.reannotation.by_group["group"].tolist()
    assert "group-table" not in recovery_page(a_summary(9, list("abc")), some_facts())


def test_what_is_technical_is_folded_away():
    history = {"gap": np.geomspace(1, 1e-4, 30)}
    facts = some_facts(selection=a_selection(), history=history, converged=False, notes=["a guess"])
    page = recovery_page(a_summary(40, list("abcd")), facts)
    folds = re.findall(r'<details class="fold">\s*<summary><h2 id="(\w+)">', page)
    assert folds == ["parameters", "convergence", "run"]
    assert "<details open" not in page
    assert "stopped before it converged</span></summary>" in page
    assert page.index("<li>a guess</li>") < page.index('<details class="fold">')


@pytest.mark.parametrize(
    ("n_rows", "m", "rate", "absent"),
    [
        (40, 5, 0, ["answers", "overall", "labels", "together", "again"]),
        (1, 5, 0.9, ["overall", "labels", "together", "again", "map"]),
        (40, 2, 0.5, ["together", "map"]),
        (40, 5, 0.5, []),
    ],
)
def test_sections_with_nothing_to_show_are_left_out(n_rows, m, rate, absent):
    ids = set(Outline(recovery_page(a_summary(n_rows, list("abcde"[:m]), rate=rate), some_facts())).ids)
    sections = {"answers", "overall", "labels", "together", "again", "map"}
    assert sections - ids == set(absent)
    assert {"rows", "run"} <= ids
    assert not {"parameters", "convergence"} & ids


def test_without_anything_hidden_it_says_so():
    page = recovery_page(a_summary(9, list("abc"), rate=0), some_facts())
    assert "<h1>Nothing was hidden</h1>" in page


def texts_on_pairs(page):
    """The answer in short and the text over the picture."""
    answer = re.search(r"<dt>Which together\?</dt>\s*<dd>(.*?)</dd>", page, re.S)[1]
    text = re.search(r'<h2 id="together">.*?</h2>\s*<p>(.*?)</p>', page, re.S)[1]
    texts = [" ".join(re.sub("<.*?>", "", part).split()) for part in (answer, text)]
    assert not any(re.search(r"[a-z]\.\S", words) for words in texts)
    return texts


def numbers_of_pairs(page):
    """The correlations in the heat map or in the table of pairs."""
    section = re.search(r'<h2 id="together">.*?</section>', page, re.S)[0]
    return re.findall(r"[+−]\d\.\d\d", re.search(r"<tbody>.*?</tbody>", section, re.S)[0])


def test_labels_that_are_overlooked_together_are_named():
    page = recovery_page(a_summary(400, ["joy", "fear", "anger", "shame"], together=True), some_facts())
    for words in texts_on_pairs(page):
        assert words.startswith("joy and fear are hidden together in ")
        assert "clearly more often than independent labels would be" in words


def a_summary_of(hidden):
    D = np.full(hidden.shape, 1 / hidden.shape[1])
    summarizer = Summarizer([f"label {j}" for j in range(hidden.shape[1])])
    summarizer.add([f"row {i}" for i in range(len(hidden))], np.where(hidden, np.nan, D), ~hidden, D)
    return summarizer.finish()


@pytest.mark.parametrize("m", [6, 20, 40])
@pytest.mark.parametrize("n_rows", [12, 400])
@pytest.mark.parametrize("kind", ["independent", "together", "apart", "both"])
def test_the_text_names_what_is_strongest_in_the_picture(kind, n_rows, m):
    rng = np.random.default_rng(1)
    hidden = rng.random((n_rows, m)) < 0.5
    hidden[:, -1] = False
    if kind in ("together", "both"):
        hidden[:, 1] = hidden[:, 0] ^ (rng.random(n_rows) < 0.1)
    if kind in ("apart", "both"):
        hidden[:, 3] = ~hidden[:, 2] ^ (rng.random(n_rows) < 0.02)
    page = recovery_page(a_summary_of(hidden), some_facts())
    in_picture = numbers_of_pairs(page)
    strongest = max(float(number[1:]) for number in in_picture)
    texts = texts_on_pairs(page)
    for words in texts:
        in_text = re.findall(r"correlation \(?([+−]\d\.\d\d)", words)
        assert set(in_text) <= set(in_picture)
        assert float(in_text[0][1:]) == strongest
    if n_rows == 400:
        assert ("clearly more often" in texts[1]) == (kind in ("together", "both"))
        assert ("clearly less often" in texts[1]) == (kind in ("apart", "both"))
        assert texts[0].startswith("No two labels are hidden together clearly") == (kind == "independent")


def test_independent_labels_are_hardly_ever_called_clear():
    rng = np.random.default_rng(0)
    first, second = np.triu_indices(8, 1)
    n_clear = 0
    for _ in range(300):
        hidden = rng.random((300, 8)) < 0.4
        both = (hidden[:, first] & hidden[:, second]).sum(axis=0)
        remarks = remarks_on(np.corrcoef(hidden.T)[first, second], both, 300)
        n_clear += any(remark.is_clear for remark in remarks)
    assert n_clear <= 9


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
