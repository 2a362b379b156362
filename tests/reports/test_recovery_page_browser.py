"""The page as its readers use it, in a browser."""

import numpy as np
import pytest

from browser import THEMES, WIDTHS, faint_text, sideways
from hidldl.reports.recovery_page import recovery_page
from recovered import HOSTILE, a_selection, a_summary, some_facts

LABELS = ["joy", "fear", "anger", "disgust", "surprise"]
NAMES = [f"face-{i:03d}.png" for i in range(1, 61)]


@pytest.fixture(scope="module")
def summary():
    return a_summary(60, LABELS, names=NAMES, together=True)


@pytest.fixture(scope="module")
def address(summary, tmp_path_factory):
    history = {"gap": np.geomspace(1, 1e-4, 30)}
    facts = some_facts(level=0.9, selection=a_selection(), history=history, converged=True, notes=["a note"])
    return _written(recovery_page(summary, facts), tmp_path_factory)


def _written(page, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def shown_figures(page):
    """By label: what the picker says was handed in and recovered, and the interval."""
    lines = page.locator("#row-table tbody tr").all()
    cells = [[cell.inner_text() for cell in line.locator("th, td").all()] for line in lines]
    return {name: (handed_in, *recovered.split("\n")) for name, _, handed_in, recovered in cells}


def percent(share):
    return f"{100 * share:.1f}\u00a0%"


def expected_figures(rows, i):
    return {
        label: (
            percent(rows.D_obs[i, j]) if rows.observed[i, j] else "? hidden",
            percent(rows.distributions[i, j]),
            f"{100 * rows.low[i, j]:.1f}–{percent(rows.high[i, j])}",
        )
        for j, label in enumerate(LABELS)
    }


def test_a_row_is_found_by_keyboard_and_its_figures_are_the_datas(address, summary, open_page):
    page = open_page(address)
    page.locator("#search").focus()
    page.keyboard.type("FACE-017")
    assert page.locator("#matches").inner_text() == "1 of 60 rows match"
    page.keyboard.press("Enter")
    assert page.locator("#row-name").inner_text().strip("\u2068\u2069") == "face-017.png"
    assert shown_figures(page) == expected_figures(summary.rows, 16)
    assert page.url.endswith("#row=17")
    page.locator("#search").fill("")
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    assert shown_figures(page) == expected_figures(summary.rows, 17)
    page.locator("#previous").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert shown_figures(page) == expected_figures(summary.rows, 15)


def test_the_first_and_the_last_row_have_one_neighbour(address, open_page):
    page = open_page(address)
    page.locator("#list").select_option("1")
    assert page.locator("#previous").is_disabled()
    page.locator("#list").select_option("60")
    assert page.locator("#next").is_disabled()


def test_links_lead_to_rows(address, summary, open_page):
    page = open_page(address + "#row=42")
    page.requests.clear()
    page.requests.append(address + "#row=42")
    assert shown_figures(page) == expected_figures(summary.rows, 41)
    lost_most = int(summary.rows.by_hidden_mass()[0])
    page.locator("#lost ~ div a").first.click()
    assert page.url.endswith(f"#row={lost_most + 1}")
    assert shown_figures(page) == expected_figures(summary.rows, lost_most)
    assert page.evaluate("document.activeElement.id") == "row-name"


def test_an_unknown_row_changes_nothing(address, summary, open_page):
    page = open_page(address)
    before = shown_figures(page)
    page.evaluate("location.hash = '#row=999'")
    page.evaluate("location.hash = '#row=<b>'")
    assert shown_figures(page) == before == expected_figures(summary.rows, int(summary.rows.by_hidden_mass()[0]))


def test_the_order_of_labels_can_be_chosen(address, summary, open_page):
    page = open_page(address)
    page.locator("#list").select_option("5")
    page.locator("#order").select_option("share")
    order = np.argsort(-summary.rows.distributions[4], kind="stable")
    assert list(shown_figures(page)) == [LABELS[j] for j in order]


def test_the_theme_is_toggled_by_keyboard(address, open_page):
    page = open_page(address, theme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(13, 17, 23)"
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert page.locator("#theme").inner_text() == "Dark theme"
    page.keyboard.press("Space")
    assert page.evaluate(background) == "rgb(13, 17, 23)"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_and_all_text_can_be_read(address, open_page, width, theme):
    page = open_page(address, width=width, theme=theme)
    assert sideways(page) == 0
    assert faint_text(page) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("m", [2, 30, 200])
def test_nothing_sticks_out_whatever_the_number_of_labels(tmp_path_factory, open_page, width, m):
    page = recovery_page(a_summary(50, [f"a label {j}" for j in range(m)]), some_facts(level=0.9))
    assert sideways(open_page(_written(page, tmp_path_factory), width=width)) == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_are_shown_and_do_nothing(tmp_path_factory, open_page, width):
    names = [HOSTILE[i % len(HOSTILE)] for i in range(40)]
    written = _written(recovery_page(a_summary(40, HOSTILE, names=names), some_facts(level=0.9)), tmp_path_factory)
    page = open_page(written, width=width)
    page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
    page.locator("#list").select_option("2")
    assert page.locator("#row-name").inner_text().strip("\u2068\u2069") == HOSTILE[1]
    assert sideways(page) == 0


def test_without_javascript_all_but_the_picker_is_there(address, open_page):
    page = open_page(address, java_script_enabled=False)
    assert page.locator("noscript p").is_visible()
    assert page.locator("#labels ~ div table").is_visible()
    assert not page.locator("#search").is_visible()
    assert not page.locator("#theme").is_visible()


def test_in_print_hundreds_of_labels_do_not_fill_pages(tmp_path_factory, open_page):
    written = recovery_page(a_summary(50, [f"label {j}" for j in range(200)]), some_facts(level=0.9))
    page = open_page(_written(written, tmp_path_factory))
    lines = page.locator("#row-table tbody tr")
    assert lines.count() == 200
    page.emulate_media(media="print")
    assert sum(line.is_visible() for line in lines.all()) == 40
    assert page.get_by_text("In print, the first 40 of 200 labels.").first.is_visible()


def test_in_print_everything_is_light_and_nothing_is_a_control(address, open_page):
    page = open_page(address, theme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not any(control.is_visible() for control in page.locator("button, input, select, nav").all())
    assert all(chart.is_visible() for chart in page.locator("svg[role=img]").all())
    assert len(page.pdf()) > 10_000
