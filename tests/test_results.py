"""Published numbers: each says where it was measured, and no two places disagree."""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from hidldl.experiments.paper import published_results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
TABLES = sorted(RESULTS.rglob("*.md"))
MEASURED = re.compile(r"Measured at commit [0-9a-f]{7,}( with changes)? on \d{4}-\d{2}-\d{2}[:;] .+\.")
FIGURE = re.compile(r"(\d+\.\d{4}) ± \d+\.\d{4}")
ROUNDING = 5e-5
"""Of numbers with four decimals."""


@pytest.mark.parametrize("path", sorted(p for p in RESULTS.rglob("*") if p.is_file()), ids=lambda p: p.name)
def test_every_file_says_where_it_was_measured(path):
    if path.suffix == ".json":
        line = json.loads(path.read_text(encoding="utf-8"))["provenance"]
    elif path.suffix == ".md":
        line = path.read_text(encoding="utf-8").rstrip().splitlines()[-1].strip("*")
    else:  # the table that a picture belongs to
        line = path.with_suffix(".md").read_text(encoding="utf-8").rstrip().splitlines()[-1].strip("*")
    assert MEASURED.fullmatch(line), line


def test_the_readme_says_what_was_measured():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    beside_the_paper = (RESULTS / "paper_chebyshev.md").read_text(encoding="utf-8")
    ratios = [row[3] for _, rows in rows_of(beside_the_paper) for row in rows]
    assert f"at {min(ratios)} to {max(ratios)} times the paper's own figures" in readme
    half, most = (summary_of(f"bayes_oracle_{percent}.md") for percent in (50, 80))
    assert f"sees no ground truth, makes {half['geometric mean'][0]} times the error" in readme
    (better,) = set(half["better on"])
    assert f"better on {better} datasets in all five measures" in readme
    assert f"With 80 % hidden it makes {most['geometric mean'][0]} times the error" in readme


def test_two_tables_of_the_oracle_agree():
    ((head, rows),) = rows_of((RESULTS / "accuracy_before_50.md").read_text(encoding="utf-8"))
    ((_, *now),) = [row for row in rows if row[0] == "*geometric mean*"]
    there = float(now[head.index("chebyshev / oracle") - 1])
    assert there == pytest.approx(float(summary_of("bayes_oracle_50.md")["geometric mean"][0]), abs=5e-4)


def summary_of(name):
    """The last lines of a table of quotients: its means, and on how many datasets one method is better."""
    ((_, rows),) = rows_of((RESULTS / name).read_text(encoding="utf-8"))
    return {name.strip("*"): values for name, *values in rows}


def cells(line):
    return [cell.strip().replace("\\*", "") for cell in line.strip().strip("|").split("|")]


def rows_of(text):
    """The tables of a text: each the cells of its head and of its rows."""
    for block in re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE):
        head, _, *rows = block.splitlines()
        yield cells(head), [cells(row) for row in rows]


def paper_numbers(text):
    """Means in the reproduced tables, by measure, dataset, method, rate and setting."""
    for section in text.removeprefix("## ").split("\n## "):
        title = section.partition("\n")[0]
        setting = "predictive" if re.search("predict", title) else "recovery"
        rate = int(re.search(r"(\d+) % hidden", title).group(1))
        for head, rows in rows_of(section):
            for dataset, *values in rows:
                for method, value in zip(head[1:], values, strict=True):
                    if FIGURE.search(value):
                        yield (head[0].split()[0], dataset, method, rate, setting), FIGURE.search(value).group(1)


def beside_paper_numbers(text):
    for _, rows in rows_of(text):
        for dataset, _, raw, _, restored, filled in rows:
            for method, value in (("HidLDL", raw), ("HidLDL, restored", restored), ("MeanFill", filled)):
                yield ("chebyshev", dataset, method, 50, "recovery"), FIGURE.search(value).group(1)


def method_numbers(text):
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        method = section.partition("\n")[0]
        for _, rows in rows_of(section):
            for dataset, _, chebyshev, _, _, canberra, _ in rows:
                yield ("chebyshev", dataset, method, 50, "recovery"), FIGURE.search(chebyshev).group(1)
                yield ("canberra", dataset, method, 50, "recovery"), FIGURE.search(canberra).group(1)


@pytest.fixture(scope="module")
def numbers():
    """Every printed mean by what it is of, with the places that print it."""
    printed = defaultdict(lambda: defaultdict(set))
    readers = {
        **dict.fromkeys((RESULTS / "paper").glob("table-*.md"), paper_numbers),
        RESULTS / "paper_chebyshev.md": beside_paper_numbers,
        RESULTS / "paper_methods.md": method_numbers,
    }
    for path, reader in readers.items():
        for key, value in reader(path.read_text(encoding="utf-8")):
            printed[key][value].add(str(path.relative_to(ROOT)))
    return printed


def test_a_number_is_the_same_wherever_it_is_printed(numbers):
    shared = [key for key, values in numbers.items() if len(set().union(*values.values())) > 1]
    assert len(shared) > 150
    different = {key: dict(values) for key, values in numbers.items() if len(values) > 1}
    assert not different


@pytest.mark.parametrize(
    ("table", "ours", "theirs", "rate"),
    [
        ("bayes_oracle_50.md", "BayesHidLDL", "HidLDL", 50),
        ("bayes_oracle_80.md", "BayesHidLDL", "HidLDL", 80),
        ("bayes_meanfill_50.md", "BayesHidLDL", "MeanFill", 50),
        ("bayes_meanfill_80.md", "BayesHidLDL", "MeanFill", 80),
    ],
)
def test_quotients_are_those_of_the_printed_means(numbers, table, ours, theirs, rate):
    compared = 0
    for head, rows in rows_of((RESULTS / table).read_text(encoding="utf-8")):
        for dataset, *quotients in rows:
            for measure, quotient in zip(head[1:], quotients, strict=True):
                keys = [(measure, dataset, method, rate, "recovery") for method in (ours, theirs)]
                if measure in ("cosine", "intersection") or not all(key in numbers for key in keys):
                    continue
                above, below = (float(next(iter(numbers[key]))) for key in keys)
                least, most = (above - ROUNDING) / (below + ROUNDING), (above + ROUNDING) / (below - ROUNDING)
                assert least - 5e-4 <= float(quotient) <= most + 5e-4, (dataset, measure)
                compared += 1
    if not any((method, share) == (ours, rate) for _, _, method, share, _ in numbers):
        pytest.skip(f"no table prints the means of {ours} at {rate} %")
    assert compared >= 11


@pytest.mark.parametrize("page", ["docs/results.md", "docs/reproduction.md", "docs/methods/bayes.md"])
def test_decimals_in_the_text_are_numbers_of_a_table(page):
    """A number that a sentence quotes is one that was measured here or that the paper has."""
    text = re.sub(
        r"^\|.*$|```.*?```|`[^`]*`|\$[^$]*\$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S
    )
    tables = "\n".join(path.read_text(encoding="utf-8") for path in TABLES)
    known = {float(number) for number in re.findall(r"\d\.\d{3,4}", tables)}
    published = published_results()
    known |= {*published["mean"], *published["std"].dropna()}
    for number in re.findall(r"(?<![\d.])0\.\d{3,4}(?!\d)", text):
        digits = len(number) - 2
        assert any(abs(float(number) - value) <= 0.5 * 10.0**-digits + 1e-9 for value in known), number
