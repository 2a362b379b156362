"""The page as its users meet it: in a browser, by mouse and by keyboard, from a table to its files."""

import re
import tempfile

import numpy as np
import pandas as pd
import pytest

from browser import THEMES, WIDTHS, faint_text, sideways
from hidldl import predict_table
from hidldl.app import jobs
from hidldl.app.server import make_app
from serving import served
from warm import warm  # noqa: F401  fixture

REFUSAL = "status of 422"
"""What the browser itself notes where the page is told that a table or a choice cannot be used."""
DROPPED = """text => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([text], "faces.csv"));
  return dropped;
}"""
LABELS = ["joy", "fear, or so", "anger..", "*", "<b>calm</b>"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("app")


@pytest.fixture(scope="module")
def address(folder, warm):  # noqa: F811
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setattr(jobs, "sys", warm)
        with served(make_app(most_megabytes=1)) as address:
            yield address
    assert list(folder.iterdir()) == []


@pytest.fixture
def open_app(browser, address):
    """Opens the page; afterwards fails if it complained or asked anything of another place."""
    pages = []

    def open_one(width=1280, theme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: REFUSAL in message.text or page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address)
        pages.append(page)
        return page

    yield open_one
    for page in pages:
        page.context.close()
        assert page.complaints == []
        assert [url for url in page.requests if not url.startswith((address, "data:"))] == []


@pytest.fixture
def table(hidden, tmp_path):
    """A table whose names mean something else in the shell and in HTML."""
    index = pd.Index([f"face-{i:02d} <i>" for i in range(60)], name="face")
    X = pd.DataFrame(hidden.X, index, ["size, in mm", "x..y", "x*", "x"])
    D = pd.DataFrame(np.where(hidden.observed, hidden.D_obs, np.nan), index, LABELS)
    path = tmp_path / "faces & places.csv"
    X.join(D).to_csv(path)
    return path


def run_quickly(page):
    page.locator("#method").select_option("meanfill")
    page.locator("#run").click()


def shown(page, section):
    page.locator(f"#{section}:visible").wait_for(timeout=60_000)


def test_from_a_table_to_its_files(open_app, table, hidden, tmp_path):
    page = open_app()
    page.locator("#file").set_input_files(table)
    shown(page, "columns")
    roles = page.locator("#roles select")
    assert [select.input_value() for select in roles.all()] == [*["label"] * 5, "id", *["feature"] * 4]
    names = page.locator("#roles tbody th").all_inner_texts()
    assert names == [*LABELS, "face", "size, in mm", "x..y", "x*", "x"]  # in each role the order of the table
    summary = page.locator("#summary").inner_text()
    assert summary.startswith("Guessed: 5 labels")
    assert "The labels look like shares, which sum to 1 in 100 % of the rows" in summary
    assert page.locator("#roles b, #summary b, #preview i").count() == 0  # names are text, never HTML
    page.get_by_label("What is x..y?").select_option("out")
    summary = page.locator("#summary").inner_text()
    assert "3 features, 1 left out; rows are named by" in summary
    assert not re.search("Guessed|look like", summary)  # it is no guess any more
    run_quickly(page)
    shown(page, "running")
    shown(page, "result")
    with page.expect_download() as download:
        page.get_by_text("Table as CSV").click()
    assert download.value.suggested_filename == "faces & places recovered.csv"
    download.value.save_as(tmp_path / "recovered.csv")
    recovered = pd.read_csv(tmp_path / "recovered.csv", index_col="face")
    D, mass = recovered[LABELS].to_numpy(), recovered["hidden_mass"].to_numpy()[:, None]
    np.testing.assert_allclose(np.where(hidden.observed, D, 0), hidden.D_obs * (1 - mass), atol=2e-6)
    report = page.frame_locator("#report")
    report.locator("#search").fill("face-17")
    report.locator("#search").press("Enter")
    figures = [line.locator("td").nth(2).inner_text() for line in report.locator("#row-table tbody tr").all()]
    assert figures == [f"{100 * share:.1f}\u00a0%" for share in D[17]]
    with page.expect_download() as download:
        page.get_by_text("Table for Excel").click()
    assert pd.read_excel(download.value.path(), index_col="face").shape == recovered.shape
    page.locator("#again").click()
    shown(page, "columns")
    assert page.get_by_label("What is x..y?").input_value() == "out"


def test_a_saved_model_predicts_new_rows(open_app, table, tmp_path):
    page = open_app()
    page.locator("#file").set_input_files(table)
    shown(page, "columns")
    run_quickly(page)
    shown(page, "result")
    with page.expect_download() as download:
        page.get_by_text("Model", exact=True).last.click()
    assert download.value.suggested_filename == "faces & places model.npz"
    model, new = tmp_path / "faces model.npz", tmp_path / "new <b>.csv"
    download.value.save_as(model)
    pd.read_csv(table, index_col="face").iloc[:10, :4].to_csv(new)
    page.locator("#next-table").click()
    assert page.locator("#model").is_hidden()  # the first view is about tables
    page.locator("#with-model").click()
    page.locator("#model").set_input_files(model)
    page.locator("#reading", has_text="Chosen: model faces model.npz. Now choose the table").wait_for()
    page.locator("#file").set_input_files(new)
    shown(page, "predict")
    assert "MeanFill) predicts 5 labels" in page.locator("#predict-summary").inner_text()
    assert page.locator("#predict-summary b, #new-name b").count() == 0
    assert page.locator("#new-intervals").is_disabled()
    page.locator("#predict-run").click()
    shown(page, "result")
    assert page.locator("[data-which=model]").is_hidden()
    with page.expect_download() as download:
        page.get_by_text("Table as CSV").click()
    assert download.value.suggested_filename == "new _b_ predicted.csv"
    predict_table(new, model).write(tmp_path / "python.csv")
    assert download.value.path().read_bytes() == (tmp_path / "python.csv").read_bytes()
    # The model stays for another table, and a wrong one of either can be replaced alone.
    page.locator("#next-table").click()
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    page.locator("#model").set_input_files(wrong)
    page.locator("#file").set_input_files(new)
    page.locator("#table-problem", has_text="wrong.json is not a model that hidldl saved").wait_for()
    page.locator("#model").set_input_files(model)
    shown(page, "predict")
    page.locator("#other-files").click()
    page.locator("#without-model").click()
    assert page.locator("#model").is_hidden()
    page.locator("#sample").click()
    shown(page, "columns")


def test_cancelling_leaves_the_page_usable_and_lets_the_next_in_line(open_app, folder, hidden, tmp_path, table):
    many = pd.concat([pd.DataFrame(hidden.X).add_prefix("x"), pd.DataFrame(hidden.D_obs).add_prefix("label ")], axis=1)
    pd.concat([many] * 40).to_csv(tmp_path / "long.csv", index=False)
    page = open_app()
    page.locator("#file").set_input_files(tmp_path / "long.csv")
    shown(page, "columns")
    page.locator("#method").select_option("hidldl")
    page.locator("#run").click()
    shown(page, "running")
    page.locator("#what", has_text="trials").wait_for(timeout=60_000)
    assert page.locator("#bar").evaluate("bar => bar.value") > 0.1
    second = open_app(width=390)
    second.locator("#file").set_input_files(table)
    shown(second, "columns")
    run_quickly(second)
    second.locator("#what", has_text="In line, place 1").wait_for(timeout=60_000)
    assert re.fullmatch(r"\d+ s", second.locator("#seconds").inner_text())
    assert sideways(second) == 0
    page.locator("#cancel").click()
    shown(page, "columns")
    assert "Cancelled" in page.locator("#run-note").inner_text()
    assert page.evaluate("document.activeElement.id") == "run"
    shown(second, "result")
    second.close()
    page.wait_for_timeout(500)
    assert [path.name for path in folder.glob("*/table-*/*")] == ["table.csv"]
    run_quickly(page)
    shown(page, "result")
    page.close()
    other = open_app()
    other.wait_for_timeout(500)
    assert list(folder.glob("*/table-*")) == []  # a page that is closed has its table forgotten


def test_what_is_wrong_is_said_where_it_is_wrong(open_app, tmp_path):
    page = open_app()
    broken, large, other = (tmp_path / name for name in ("broken.csv", "large.csv", "picture.png"))
    broken.write_text("x,a,b\n1,0.5,0.5\n2,0.5\n")
    large.write_bytes(b"0" * 1_100_000)
    other.write_bytes(b"\x89PNG")
    for path, says in ((broken, "row 2 of broken.csv has 2 fields"), (large, "takes 1"), (other, "reads .csv")):
        page.locator("#file").set_input_files(path)
        page.locator("#table-problem", has_text=says).wait_for()
    amounts = tmp_path / "amounts.csv"
    amounts.write_text("x,a,b,word\n" + "".join(f"{i},{1.5 * i + 1},{i % 3 + 0.2},w{i}\n" for i in range(20)))
    page.locator("#file").set_input_files(amounts)
    shown(page, "columns")
    assert "does not show which columns are labels" in page.locator("#guess-problem").inner_text()
    page.locator("#run").click()
    page.locator("#run-problem", has_text="two or more columns").wait_for()
    for label in "ab":
        page.get_by_label(f"What is {label}?").select_option("label")
    page.get_by_label("What is word?").select_option("id")
    run_quickly(page)
    page.locator("#run-problem", has_text="sum to 1.2, not to 1").wait_for(timeout=60_000)
    assert page.evaluate("document.activeElement.id") == "run-problem"
    page.locator("#amounts").select_option("yes")
    page.locator("#run").click()
    shown(page, "result")


def test_a_sheet_of_a_workbook_is_chosen(open_app, table, tmp_path):
    path = tmp_path / "faces.xlsx"
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"about": ["made by hand"]}).to_excel(writer, sheet_name="Notes", index=False)
        pd.read_csv(table).to_excel(writer, sheet_name="--Faces & <b>", index=False)
    page = open_app()
    page.locator("#file").set_input_files(path)
    page.locator("#sheet").select_option("--Faces & <b>")
    page.locator("#read-sheet").click()
    shown(page, "columns")
    run_quickly(page)
    shown(page, "result")
    assert page.locator("#sheets").is_hidden()


def test_the_sample_by_keyboard_only(open_app):
    page = open_app()

    def go_to(id):
        for _ in range(60):
            if page.evaluate("document.activeElement.id") == id:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"no way to {id} by keyboard")

    go_to("sample")
    page.keyboard.press("Enter")
    shown(page, "columns")
    assert page.evaluate("document.activeElement.id") == "columns-title"
    go_to("method")
    page.keyboard.type("Mean")
    go_to("run")
    page.keyboard.press("Space")
    shown(page, "result")
    assert page.evaluate("document.activeElement.id") == "result-title"
    go_to("report")
    assert page.frame_locator("#report").locator("h1").inner_text().startswith("Hidden labels hold")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_window_and_can_be_read(open_app, table, width, theme):
    page = open_app(width, theme)
    page.locator("#table summary").click()
    assert (sideways(page), faint_text(page)) == (0, [])
    dropped = page.evaluate_handle(DROPPED, table.read_text(encoding="utf-8"))
    page.dispatch_event("#table-title", "drop", {"dataTransfer": dropped})
    shown(page, "columns")
    assert (sideways(page), faint_text(page)) == (0, [])
    page.locator("#another").click()
    page.locator("#with-model").click()
    assert (sideways(page), faint_text(page)) == (0, [])
    if (width, theme) == (360, "dark"):
        page.locator("#without-model").click()
        page.locator("#file").set_input_files(table)
        shown(page, "columns")
        run_quickly(page)
        shown(page, "result")
        assert (sideways(page), faint_text(page)) == (0, [])


def test_zeros_that_nobody_explains_are_offered_and_explained(open_app, hidden, tmp_path):
    labels = pd.DataFrame(np.where(hidden.observed, hidden.D_obs, 0), columns=LABELS)
    path = tmp_path / "zeros.csv"
    pd.DataFrame(hidden.X, columns=list("wxyz")).join(labels).to_csv(path, index=False)
    page = open_app(width=390)
    page.locator("#file").set_input_files(path)
    shown(page, "columns")
    said = page.locator("#hidden-meaning")
    assert said.inner_text() == "In this table nobody knows which zeros are hidden: each is weighed."
    page.locator("#method").select_option("meanfill")
    assert said.inner_text() == "In this table zeros are hidden: this method cannot tell which are."
    page.locator("#hidden").select_option("unknown")
    assert "choose BayesHidLDL" in said.inner_text()
    page.locator("#run").click()
    page.locator("#run-problem:visible").wait_for(timeout=60_000)
    assert "choose BayesHidLDL" in page.locator("#run-problem").inner_text()
    page.locator("#method").select_option("bayes")
    assert said.inner_text().startswith("Nobody knows which zeros are hidden: each is weighed")
    page.get_by_label("What is w?").select_option("out")
    page.locator("#hidden").select_option("auto")
    assert said.inner_text() == "Empty cells are hidden; if none is empty, each 0 is weighed."
    # Every choice can be read in full.
    cut = "select => [...select.options].map(one => one.text).filter(text => text.length > 34)"
    assert page.locator("#hidden").evaluate(cut) == []
