"""Sphinx configuration of the site: pages, notebooks and the gallery are executed when it is built."""

import os
import warnings
from pathlib import Path

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from hidldl import __version__, recover_table
from hidldl.app.sample import write_sample
from hidldl.methods import HOUSE

# One look for the figures of pages and notebooks, which run in processes of their own, and of the gallery.
os.environ["MATPLOTLIBRC"] = str(Path(__file__).with_name("matplotlibrc"))

project = "hidldl"
author = "The hidldl developers"
copyright = "2026, The hidldl developers"
release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_extra", "jupyter_execute", "_build", "results", "**.ipynb_checkpoints", "gallery/*.ipynb"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

# Every page and notebook runs, away from the sources; an error, or a word on stderr, fails the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 180
nb_output_stderr = "remove-warn"
nb_code_prompt_show = "Show the code"
nb_merge_streams = True
nb_ipywidgets_js = {}  # nothing is fetched from elsewhere
# The same for the gallery.
warnings.filterwarnings("error", category=UserWarning, module="hidldl|__main__")

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": (),  # a reset would drop the matplotlibrc
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": (),
}

ROLES = {"recoverer": "Recoverers", "tuner": "Choosing parameters", "learner": "Learners"}


def write_methods_page(path):
    """The page of all methods, from the registry: what is entered there is documented by that."""
    lines = ["Methods", "=======", "", ".. currentmodule:: hidldl", ""]
    for role, title in ROLES.items():
        methods = [method for method in HOUSE if method.role == role]
        lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree: generated", ""]
        lines += [*(f"   {method.class_name}" for method in methods), ""]
        lines += [f"- **{method.title}** (``{method.name}``): {method.summary}" for method in methods] + [""]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


write_methods_page(Path(__file__).parent / "api" / "methods.rst")


def write_example(folder):
    """A table to try things with, and its report, for readers of the site."""
    folder.mkdir(parents=True, exist_ok=True)
    table, name = write_sample(folder)
    table.replace(folder / "words.csv")
    result = recover_table(folder / "words.csv", name=name, intervals=0.9)
    result.write(report=folder / "report.html", command="hidldl recover words.csv --intervals 0.9 --report report.html")


write_example(Path(__file__).parent / "_extra" / "example")
html_extra_path = ["_extra"]

html_theme = "pydata_sphinx_theme"
html_title = "hidldl"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_end": [],
}
html_sidebars = {"index": []}


def setup(app):
    """Write formulas as MathML, which browsers show without a script from elsewhere."""

    def write(display):
        def visit(translator, node):
            formula = convert(node.astext(), display=display)
            translator.body.append(f'<div class="formula">{formula}</div>' if display == "block" else formula)
            raise SkipNode

        return visit, None

    app.add_html_math_renderer("mathml", inline_renderers=write("inline"), block_renderers=write("block"))
