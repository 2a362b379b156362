"""Keys change with the code that decides a result, and with nothing else."""

import importlib
import sys

import pytest

from hidldl import BayesHidLDL, HidLDL, MeanFill, SelfTuned
from hidldl.experiments import code_version as versions
from hidldl.experiments.code_version import code_version, normalized
from hidldl.experiments.protocol import Condition, Contender, Evaluation

SOURCE = '''
"""A method."""

from hidldl import MeanFill


class Mine(MeanFill):
    """A mean fill."""

    def shift(self, x):
        """Move it."""
        return x + 1  # by one
'''
CONDITION = Condition("recovery", "small", 0.5, 0)


@pytest.fixture
def key_of(tmp_path, monkeypatch):
    """The key of an evaluation with a class whose module has this source."""
    monkeypatch.syspath_prepend(tmp_path)

    def key(source):
        for name in ("code_version", "_source", "_reach", "normalized"):
            getattr(versions, name).cache_clear()
        sys.modules.pop("mine_in_a_file", None)
        importlib.invalidate_caches()
        (tmp_path / "mine_in_a_file.py").write_text(source, encoding="utf-8")
        kind = importlib.import_module("mine_in_a_file").Mine
        return Evaluation(CONDITION, Contender.of("Mine", kind())).key

    return key


def test_a_change_of_the_code_changes_the_key(key_of):
    assert key_of(SOURCE.replace("x + 1", "x + 2")) != key_of(SOURCE)
    assert key_of(SOURCE) == key_of(SOURCE)


def test_comments_docstrings_and_layout_do_not(key_of):
    other_words = (
        SOURCE.replace("# by one", "# upwards").replace("Move it.", "Add one.").replace("A mean fill.", "Mine.")
    )
    assert key_of(other_words.replace("\n\n", "\n\n\n")) == key_of(SOURCE)


def test_what_a_class_uses_of_the_package_counts(key_of, monkeypatch):
    before = key_of(SOURCE)
    read = versions._source
    versions.code_version.cache_clear()
    changed = lambda name: read(name) + "\nCHANGED = 1\n" if name == "hidldl.simplex" else read(name)  # noqa: E731
    monkeypatch.setattr(versions, "_source", changed)
    kind = sys.modules["mine_in_a_file"].Mine
    after = Evaluation(CONDITION, Contender.of("Mine", kind())).key
    monkeypatch.undo()
    versions.code_version.cache_clear()
    assert after != before


def test_every_module_on_the_way_is_reached():
    reached = versions._reach(frozenset({BayesHidLDL.__module__}))
    assert {"hidldl.recovery.latent", "hidldl.recovery.posterior", "hidldl.base", "hidldl.simplex"} <= reached
    assert "hidldl.recovery.algorithm1" not in reached
    assert "hidldl.recovery.algorithm1_compiled" in versions._reach(frozenset({HidLDL.__module__}))


def test_imports_of_every_form_are_found():
    tree = versions.ast.parse(
        "import hidldl.graph\n"
        "from hidldl.reports import comparison\n"
        "from .simplex import clip_and_close\n"
        "from hidldl import MeanFill\n"
        "def later():\n    from hidldl.theory import recovery_bound\n"
        "if TYPE_CHECKING:\n    from hidldl.saving import save_model\n"
    )
    assert versions._imports(tree, "hidldl.somewhere") == {
        "hidldl.graph",
        "hidldl.reports.comparison",
        "hidldl.simplex",
        "hidldl.recovery.meanfill",
        "hidldl.theory",
    }


def test_estimators_among_the_parameters_count(monkeypatch):
    tuned = Contender.of("tuned", SelfTuned(MeanFill(), {"max_iter": [3]}))
    assert code_version(MeanFill) in tuned.code()
    assert code_version(SelfTuned) in tuned.code()


def test_a_class_without_a_file_has_a_version():
    namespace = {"__name__": "nowhere"}
    exec("class Typed:\n    pass", namespace)
    assert code_version(namespace["Typed"]) == code_version(namespace["Typed"])


def test_a_function_of_nothing_but_words_is_normalized():
    assert normalized('def f():\n    """Words."""') == normalized('def f():\n    """Other words."""')


def test_fields_of_one_version_of_python_do_not_count():
    assert "type_params" not in normalized("def f(x):\n    return x")
    assert normalized("x = None") != normalized("x = 0") != normalized("x = []") != normalized("x = ()")
