"""What the names of columns say about them. A name alone decides nothing: cells must bear it out."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


LABEL_WORDS = _words_of("label vote rating star share degree emotion sentiment opinion")
"""Words that the names of all labels of a table have in common, in the singular."""
VALUE_WORDS = _words_of("""
    joy happy happiness fear afraid fearful anger angry sad sadness surprise surprised disgust disgusted neutral
    contempt awe calm excitement amusement contentment trust anticipation love boredom anxiety shame guilt pride
    positive negative agree disagree agreement neither undecided unsure satisfied dissatisfied likely unlikely
    never rarely sometime often alway excellent good fair poor bad
""")
"""Words for labels themselves: emotions, and answers to questions."""
FEATURE_WORDS = _words_of("""
    x f v feature feat attr attribute dim dimension pc pca component var variable embedding emb latent factor input
    bin hist histogram pixel px lbp hog tfidf age width height length depth size weight year price income temperature
""")
"""Words that are the names of features, alone or with a number."""
TOTAL_WORDS = _words_of("total sum all overall n gesamt summe count vote response respondent rating answer rater")
"""Words of a column that holds the sums of others. It is taken for one only if it does."""
TOTAL_ROWS = frozenset({"total", "totals", "sum", "all", "overall", "grand total", "gesamt", "summe"})
"""What the last row is called where it sums up the others."""
ID_WORDS = _words_of("id uid uuid guid")
ROW_NAMES = ID_WORDS | _words_of("name title index key item row nr")


@lru_cache(maxsize=10_000)
def words(name: str) -> tuple[str, ...]:
    """The words of a name in small letters and the singular, and its numbers: "starVotes_3" has star, vote and 3.

    Examples
    --------
    >>> from hidldl.tables.words import words
    >>> words("starVotes_3")
    ('star', 'vote', '3')
    """
    parts = re.findall(r"[^\W\d_]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return tuple(re.sub(r"(?<=[^\Ws]{2})s$", "", part.lower()) for part in parts)


def families(names: Sequence[str]) -> list[str]:
    """What names have in common with others: their first word, or the last if it is no single letter and more share it.

    Bare numbers are a family too; a name without words or numbers has none, "".

    Examples
    --------
    >>> from hidldl.tables.words import families
    >>> families(["x1", "x2", "joy votes", "fear votes", "7"])
    ['x', 'x', 'vote', 'vote', '0']
    """
    parts = [[part for part in words(name) if not part.isdigit()] for name in names]
    first, last = (Counter(part[end] for part in parts if part) for end in (0, -1))
    return [
        (part[-1] if len(part[-1]) > 1 and last[part[-1]] > first[part[0]] else part[0])
        if part
        else "0"
        if words(name)
        else ""
        for part, name in zip(parts, names, strict=True)
    ]


def is_scale(names: Collection[str]) -> bool:
    """Whether names are the points of a scale: bare whole numbers, few and without holes, as 1 to 5 or -4 to 4."""
    if not all(re.fullmatch(r"[-+]?\d{1,3}", name.strip()) for name in names):
        return False
    points = sorted(int(name) for name in names)
    return points == list(range(points[0], points[0] + len(points)))


def is_feature_name(name: str) -> bool:
    """Whether a name is a word for features, alone or with one number: "age" and "x12", not "F" or "age 15 to 24"."""
    word, *numbers = words(name) or ("",)
    is_numbered = len(numbers) == 1 and numbers[0].isdigit()
    return word in FEATURE_WORDS and (is_numbered or (not numbers and len(word) > 1))


def label_group(name: str) -> str:
    """What a name has in common with those of other labels: a word for labels, or that it is a value; "" if neither."""
    parts = words(name)
    common = next((part for part in parts if part in LABEL_WORDS), "")
    return common or ("value" if not VALUE_WORDS.isdisjoint(parts) else "")


class NameTraits(NamedTuple):
    """What each of some names has in common with others: its family, its `label_group`, and if it is a feature's."""

    families: list[str]
    groups: list[str]
    are_features: list[bool]


def name_traits(names: Sequence[str]) -> NameTraits:
    """The traits of names, each beside the others."""
    return NameTraits(families(names), [label_group(name) for name in names], [is_feature_name(name) for name in names])


def goes_on(block: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the family of names of a block has others beyond: then names do not tell where the block ends."""
    every = families([*block, *others])
    return sum(name in every[: len(block)] for name in every[len(block) :]) > 1


def name_points(block: Sequence[str], others: Sequence[str]) -> int:
    """Whether the names of a block speak for labels (1), for features (-1) or for neither (0), as against the others.

    A family of names that goes on beyond the block, such as V1 to V20, says nothing about a part of it.
    """
    if goes_on(block, others):
        return 0
    if is_scale(block) or sum(label_group(name) != "" for name in block) >= 0.5 * len(block):
        return 1
    if sum(map(is_feature_name, block)) >= 0.5 * len(block):
        return -1
    return 0
