"""The page about a check: what it says, and that it can be read."""

import pandas as pd
import pytest

from browser import THEMES, WIDTHS, faint_text, sideways
from hidldl.reports import check_page as module
from hidldl.reports.check_page import CheckFacts, check_page


def facts(n_bad=3, **more):
    bad = pd.DataFrame({"row": range(1, n_bad + 1), "name": [f"<i>face</i> {'long' * i}" for i in range(n_bad)]})
    found = {
        "problems": ["3 rows of <faces>.csv cannot be right"],
        "warnings": ["90% of the label cells are hidden"],
        "notes": ["rows are named by 'face'"],
        "columns": {"labels": ("joy", "fear & dread", "w" * 200), "numbers": ()},
        "left_out": [("date", "it holds dates")],
        "bad_rows": bad.assign(reason="its labels sum to 0.8, not to 1"),
    }
    return CheckFacts("<faces>.csv", 60, False, "hidldl recover '<faces>.csv' --check", **{**found, **more})


def test_what_is_in_a_table_is_text():
    page = check_page(facts(left_out=[("a\x00b", "it is <empty>")]))
    assert "<i>" not in page
    assert "<faces>" not in page
    assert "&lt;i&gt;face&lt;/i&gt;" in page
    assert "a\u2400b" in page


def test_rows_that_go_by_their_numbers_are_named_once():
    bad = pd.DataFrame({"row": [4], "name": [4], "reason": ["it has labels but none above 0"]})
    assert '<th scope="col">name</th>' not in check_page(facts(bad_rows=bad))
    assert '<th scope="col">name</th>' in check_page(facts())


def test_a_page_says_where_its_list_ends(monkeypatch):
    monkeypatch.setattr(module, "MOST_BAD_ROWS", 2)
    page = check_page(facts())
    assert page.count('<th scope="row">') == 2
    assert "3 of 60 rows; the first 2 are listed" in page


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window_and_can_be_read(open_page, tmp_path, width, theme):
    path = tmp_path / "check.html"
    path.write_text(check_page(facts(n_bad=40)), encoding="utf-8")
    page = open_page(path.as_uri(), width=width, theme=theme)
    assert page.locator("tbody tr").count() == 40
    assert "60 rows. 40 rows cannot be right. 1 thing looks implausible." in page.locator(".lead").inner_text()
    assert (sideways(page), faint_text(page)) == (0, [])
