"""The page as its readers use it, in a browser."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest

from browser import THEMES, WIDTHS, faint_text, sideways
from hidldl.reports.reannotation import ListOptions
from hidldl.reports.recovery_page import recovery_page
from recovered import HOSTILE, a_selection, a_summary, some_facts

LABELS = ["joy", "fear", "anger", "disgust", "surprise"]
NAMES = [f"face-{i:03d}.png" for i in range(1, 61)]
PHONE = 390


@pytest.fixture(scope="module")
def summary():
    groups = np.array(["Ann", "Bob", "Chris"])[np.arange(60) % 3]
    return a_summary(60, LABELS, names=NAMES, together=True, groups=groups, without=[9, 29])


@pytest.fixture(scope="module")
def address(summary, tmp_path_factory):
    history = {"gap": np.geomspace(1, 1e-4, 30)}
    facts = some_facts(level=0.9, selection=a_selection(), history=history, converged=True, notes=["a note"])
    return _written(recovery_page(summary, facts), tmp_path_factory)


def _written(page, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def shown_numbers(page):
    """By label: what the picker says was handed in and recovered, and the interval."""
    name, _, handed_in, recovered = (
        page.locator(f"#row-table tbody tr > :nth-child({k})").all_inner_texts() for k in range(1, 5)
    )
    return {name[j]: (handed_in[j], *recovered[j].split("\n")) for j in range(len(name))}


def percent(share):
    return f"{100 * share:.1f}\u00a0%"


def expected_numbers(rows, i):
    return {
        label: (
            percent(rows.D_obs[i, j]) if rows.observed[i, j] else "? hidden",
            percent(rows.distributions[i, j]),
            f"{100 * rows.low[i, j]:.1f}–{percent(rows.high[i, j])}",
        )
        for j, label in enumerate(LABELS)
    }


def test_a_row_is_found_by_keyboard_and_its_numbers_are_the_datas(address, summary, open_page):
    page = open_page(address)
    page.locator("#search").focus()
    page.keyboard.type("FACE-017")
    assert page.locator("#matches").inner_text() == "1 of 60 rows match"
    page.keyboard.press("Enter")
    assert page.locator("#row-name").inner_text().strip("\u2068\u2069") == "face-017.png"
    assert shown_numbers(page) == expected_numbers(summary.rows, 16)
    assert page.url.endswith("#row=17")
    page.locator("#search").fill("")
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    assert shown_numbers(page) == expected_numbers(summary.rows, 17)
    page.locator("#previous").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert shown_numbers(page) == expected_numbers(summary.rows, 15)


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
    assert shown_numbers(page) == expected_numbers(summary.rows, 41)
    first = int(summary.reannotation.rows["number"][0])
    page.locator("#again-table a").first.click()
    assert page.url.endswith(f"#row={first}")
    assert shown_numbers(page) == expected_numbers(summary.rows, first - 1)
    assert page.evaluate("document.activeElement.id") == "row-name"


def test_an_unknown_row_changes_nothing(address, summary, open_page):
    page = open_page(address)
    before = shown_numbers(page)
    page.evaluate("location.hash = '#row=999'")
    page.evaluate("location.hash = '#row=<b>'")
    first = int(summary.reannotation.rows["number"][0])
    assert shown_numbers(page) == before == expected_numbers(summary.rows, first - 1)


def test_a_row_says_of_which_kind_it_is(tmp_path_factory, open_page):
    kinds = np.column_stack([np.linspace(0, 1, 60), np.linspace(1, 0, 60)])
    summary = a_summary(60, LABELS, names=NAMES, kinds=kinds)
    facts = some_facts(kinds=["with more joy", f"with less {HOSTILE[1]}"])
    page = open_page(_written(recovery_page(summary, facts), tmp_path_factory))
    for number, says in (
        (1, f"kind 2 of 2, with less {HOSTILE[1]} (100\u00a0% likely)"),
        (60, "kind 1 of 2, with more joy"),
    ):
        page.locator("#list").select_option(str(number))
        assert says in page.locator("#row-text").inner_text()


def test_the_order_of_labels_can_be_chosen(address, summary, open_page):
    page = open_page(address)
    page.locator("#list").select_option("5")
    page.locator("#order").select_option("share")
    order = np.argsort(-summary.rows.distributions[4], kind="stable")
    assert list(shown_numbers(page)) == [LABELS[j] for j in order]


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


def names_in_list(page, part="tbody"):
    """The names in the list of rows to annotate again, as they are shown."""
    return page.locator(f"#again-table {part} tr[id]:visible th").all_inner_texts()


def test_the_list_is_sorted_by_keyboard(address, summary, open_page):
    page = open_page(address)
    rows = summary.reannotation.rows
    ranked = rows[rows["labels_seen"] > 0]
    assert names_in_list(page) == rows["name"].tolist()
    head = page.locator("#again-table thead th")
    head.filter(has_text="number").locator("button").focus()
    page.keyboard.press("Enter")
    assert names_in_list(page, "tbody:not(.without)") == ranked.sort_values("number", ascending=False)["name"].tolist()
    assert names_in_list(page, "tbody.without") == ["face-030.png", "face-010.png"]
    assert [th.get_attribute("aria-sort") for th in head.all()].count("descending") == 1
    page.keyboard.press("Space")
    assert names_in_list(page, "tbody:not(.without)") == ranked.sort_values("number")["name"].tolist()
    assert head.filter(has_text="number").get_attribute("aria-sort") == "ascending"
    head.filter(has_text="group").locator("button").click()
    assert (
        names_in_list(page, "tbody:not(.without)")
        == ranked.sort_values(["group", "number"], kind="stable")["name"].tolist()
    )
    head.filter(has_text="hidden mass").locator("button").click()
    by_mass = ranked.sort_values("hidden_mass", ascending=False)["name"].tolist()
    assert names_in_list(page, "tbody:not(.without)") == by_mass


def test_groups_are_sorted(address, summary, open_page):
    page = open_page(address)
    names = page.locator("#group-table tbody th")
    assert names.all_inner_texts() == summary.reannotation.by_group["group"].tolist()
    page.locator("#group-table thead button").first.click()
    assert names.all_inner_texts() == ["Ann", "Bob", "Chris"]


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_the_list_is_filtered(address, summary, open_page, width):
    page = open_page(address, width=width)
    rows = summary.reannotation.rows
    box, count = page.locator("#again-filter"), page.locator("#again-count")
    box.fill("BOB")
    assert names_in_list(page) == rows["name"][rows["group"] == "Bob"].tolist()
    assert count.inner_text() == f"{(rows['group'] == 'Bob').sum()} of {len(rows)} rows"
    box.fill("disgust")
    in_row = (rows[["label_1", "label_2", "label_3"]] == "disgust").any(axis=1)
    assert names_in_list(page) == rows["name"][in_row].tolist()
    box.fill("no such thing")
    assert names_in_list(page) == []
    assert not page.get_by_text("Rows without any label: ask for all").is_visible()
    assert page.locator("#again-download").is_disabled()
    box.fill("")
    assert names_in_list(page) == rows["name"].tolist()
    assert count.inner_text() == ""


def download_of(page):
    """The lines of the file that the page makes of its list."""
    with page.expect_download() as download:
        page.locator("#again-download").click()
    assert download.value.suggested_filename == "annotate-again.csv"
    text = Path(download.value.path()).read_bytes().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def as_texts(frame):
    return [list(frame)] + [[str(value) for value in row] for row in frame.to_numpy().tolist()]


def test_the_list_is_downloaded_as_it_is_shown(address, summary, open_page):
    page = open_page(address, accept_downloads=True)
    frame = summary.reannotation.frame()
    assert download_of(page) == as_texts(frame)
    page.locator("#again-filter").fill("Ann")
    page.locator("#again-table thead th").filter(has_text="number").locator("button").click()
    seen = frame["labels_seen"] > 0
    in_order = frame.assign(without=~seen).sort_values(["without", "number"], ascending=[True, False])
    shown = in_order[in_order["group"] == "Ann"].drop(columns="without")
    assert download_of(page) == as_texts(shown)


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_a_search_jumps_to_the_row_and_marks_it(address, summary, open_page, width):
    page = open_page(address, width=width)
    page.locator("#search").fill("17")
    page.keyboard.press("Enter")
    assert shown_numbers(page) == expected_numbers(summary.rows, 16)
    box = page.locator("#row-name").bounding_box()
    assert 0 <= box["y"] < 100
    assert page.locator(".target #row-name").is_visible()
    assert page.evaluate("document.activeElement.id") == "row-name"
    page.locator("#search").fill("no such row")
    assert page.locator("#matches").inner_text() == "No row matches."
    page.keyboard.press("Enter")
    assert shown_numbers(page) == expected_numbers(summary.rows, 16)


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    """A page that holds some of the rows, and a list that holds others."""
    labels = [f"label {j}" for j in range(200)]
    summary = a_summary(1500, labels, reannotation=ListOptions(most_rows=200))
    page = recovery_page(summary, some_facts(level=0.9))
    in_picker = {int(number) for number in re.findall(r'href="#row=(\d+)"', page)}
    only_in_list = [int(number) for number in summary.reannotation.rows["number"] if number not in in_picker]
    return _written(page, tmp_path_factory), only_in_list


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_a_row_that_the_page_does_not_hold_is_not_called_absent(long_table, open_page, width):
    address, only_in_list = long_table
    page = open_page(address, width=width)
    status, n_held = page.locator("#matches"), page.locator("#list option").count()
    page.locator("#search").fill("row 9999")
    assert status.inner_text() == f"No match here. This page holds {n_held} of the 1,500 rows."
    on_page = {int(option.get_attribute("value")) for option in page.locator("#list option").all()} | set(only_in_list)
    page.locator("#search").fill("")
    on_page |= {int(option.get_attribute("value")) for option in page.locator("#list option").all()}
    absent = next(number for number in range(1100, 1500) if number not in on_page)
    page.locator("#search").fill(str(absent))
    assert status.inner_text() == f"This page holds {n_held} of the 1,500 rows, and not row {absent:,}."
    page.evaluate(f"location.hash = '#row={absent}'")
    assert status.inner_text() == f"This page holds {n_held} of the 1,500 rows, and not row {absent:,}."


def test_a_row_that_is_only_in_the_list_is_found_there(long_table, open_page):
    address, only_in_list = long_table
    page = open_page(address)
    number = only_in_list[-1]
    page.locator("#again-filter").fill("no such thing")
    page.locator("#search").fill(f"row {number}")
    assert "it is in the list of rows to annotate again" in page.locator("#matches").inner_text()
    page.keyboard.press("Enter")
    line = page.locator(f"#again-{number}")
    assert page.evaluate("document.activeElement.id") == f"again-{number}"
    assert 0 <= line.bounding_box()["y"] < 900
    assert "target" in line.get_attribute("class")


def cut_off(page):
    """Parts of the page that are wider than their boxes: a reader has to scroll them sideways."""
    return page.evaluate(
        """[...document.querySelectorAll(".scroll")]
          .filter(box => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
          .map(box => box.getAttribute("aria-labelledby"))"""
    )


@pytest.mark.parametrize("theme", THEMES)
def test_on_a_phone_nothing_is_cut_off(address, open_page, theme):
    page = open_page(address, width=PHONE, theme=theme)
    assert sideways(page) == 0
    assert cut_off(page) == []
    assert faint_text(page) == []


@pytest.mark.parametrize("m", [2, 7, 14, 30, 200])
def test_on_a_phone_nothing_is_cut_off_whatever_the_number_of_labels(tmp_path_factory, open_page, m):
    labels = [f"a rather long name of label {j}" for j in range(m)]
    summary = a_summary(50, labels, names=[f"https://example.com/pictures/{i}" for i in range(50)], together=m > 2)
    page = open_page(_written(recovery_page(summary, some_facts(level=0.9)), tmp_path_factory), width=PHONE)
    assert sideways(page) == 0
    assert cut_off(page) == []


def test_what_is_technical_opens_by_its_link_and_in_print(address, open_page):
    page = open_page(address)
    command = page.get_by_text("hidldl recover table.csv --report report.html")
    assert not command.is_visible()
    page.locator("nav a", has_text="How it was done").click()
    command.wait_for()  # the browser tells the page of a new address a moment after the click
    charts = page.locator("#parameters").locator("xpath=ancestor::details").locator("svg[role=img]")
    assert not charts.first.is_visible()
    page.emulate_media(media="print")
    assert charts.first.is_visible()
    assert charts.first.bounding_box()["height"] > 100


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_and_all_text_can_be_read(address, open_page, width, theme):
    page = open_page(address, width=width, theme=theme)
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
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
    summary = a_summary(40, HOSTILE, names=names, groups=names, without=[5])
    written = _written(recovery_page(summary, some_facts(level=0.9)), tmp_path_factory)
    page = open_page(written, width=width)
    page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
    page.locator("#list").select_option("2")
    assert page.locator("#row-name").inner_text().strip("\u2068\u2069") == HOSTILE[1]
    page.locator("#again-filter").fill("</script>")
    page.locator("#again-table thead button").first.click()
    assert len(names_in_list(page)) >= 10
    assert sideways(page) == 0


def test_without_javascript_all_but_the_picker_is_there(address, open_page):
    page = open_page(address, java_script_enabled=False)
    assert page.locator("noscript p").is_visible()
    assert page.locator("#labels ~ div table").is_visible()
    assert page.locator("#again-table").is_visible()
    assert not page.locator("#again-table button, #again-download, #search").first.is_visible()
    page.locator("summary", has_text="How it was done").click()
    assert page.get_by_text("hidldl recover table.csv --report report.html").is_visible()
    assert not page.locator("#theme").is_visible()


def test_in_print_hundreds_of_labels_do_not_fill_pages(tmp_path_factory, open_page):
    written = recovery_page(a_summary(50, [f"label {j}" for j in range(200)]), some_facts(level=0.9))
    page = open_page(_written(written, tmp_path_factory))
    lines = page.locator("#row-table tbody tr")
    assert lines.count() == 200
    page.emulate_media(media="print")
    assert sum(line.is_visible() for line in lines.all()) == 40
    assert page.get_by_text("In print, the first 40 of 200 labels.").first.is_visible()


def test_in_print_everything_is_light_and_open_and_nothing_is_a_control(address, open_page):
    page = open_page(address, theme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not any(control.is_visible() for control in page.locator("button:not(th *), input, select, nav").all())
    assert all(chart.is_visible() for chart in page.locator("svg[role=img]").all())
    assert len(page.pdf()) > 10_000
