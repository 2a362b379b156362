"""A browser for tests of pages: the system's chromium, driven by playwright; tests are skipped where it is absent."""

import os
import shutil

import pytest

WIDTHS = (360, 1280)
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def browser():
    """One chromium for the tests of a file: while playwright is there, nothing else can run an event loop."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        # Where pages must be tested, a browser that is absent is a failure.
        absent = pytest.fail if os.environ.get("HIDLDL_NEEDS_BROWSER") else pytest.skip
        absent("no chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as session:
        chromium = session.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Opens an address at a width and theme; afterwards fails if the page complained or asked for anything else."""
    opened = []

    def open_one(address, *, width=1280, theme="light", **context):
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **context).new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address)
        opened.append((page, address))
        return page

    yield open_one
    for page, address in opened:
        page.context.close()
        assert page.complaints == []
        assert page.requests == [address]


def sideways(page):
    """By how many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def faint_text(page):
    """Texts with their contrast to what is behind them where that is below 4.5, which WCAG calls AA."""
    return page.evaluate(FAINT_TEXT)


FAINT_TEXT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = {};
  const rgba = color => known[color] ??= painted(color);
  const painted = color => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = node => {
    const color = rgba(getComputedStyle(node).backgroundColor);
    return color[3] === 255 ? color : behind(node.parentElement);
  };
  const contrast = node => {
    const style = getComputedStyle(node);
    const [a, b] = [rgba(node.closest("svg") ? style.fill : style.color), behind(node)].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  return [...document.querySelectorAll("body *")]
    .filter(node => [...node.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim()))
    .filter(node => node.checkVisibility() && !node.closest("script, style, option, title, button:disabled"))
    .map(node => [node.textContent.trim().slice(0, 30), contrast(node)])
    .filter(([, value]) => value < 4.5);
}"""
