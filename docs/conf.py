"""Sphinx configuration of the site."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from hidldl import __version__

project = "hidldl"
author = "The hidldl developers"
copyright = "2026, The hidldl developers"
release = __version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build", "results"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "hidldl"
html_math_renderer = "mathml"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"]}
# Only the API has subpages to navigate.
_PAGES = (
    *("index", "start", "bayes", "choosing", "method", "convergence", "methods", "theorem1"),
    *("reproduction", "results", "data", "changelog"),
)
html_sidebars = {page: [] for page in _PAGES}


def setup(app):
    """Write formulas as MathML, which browsers show without a script from elsewhere."""

    def write(display):
        def visit(translator, node):
            formula = convert(node.astext(), display=display)
            translator.body.append(f"<p>{formula}</p>" if display == "block" else formula)
            raise SkipNode

        return visit, None

    app.add_html_math_renderer("mathml", inline_renderers=write("inline"), block_renderers=write("block"))
