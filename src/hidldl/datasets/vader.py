"""Ratings of words from the VADER lexicon, which ships inside the package vaderSentiment."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from hidldl.datasets.dataset import Dataset

VADER_NAME = "VADER"
RATINGS = range(-4, 5)
N_COMPONENTS = 128
VADER_SHAPE = (7520, N_COMPONENTS, len(RATINGS))


def load_vader() -> Dataset:
    """7,520 words and emoticons, each rated by ten people from -4 (most negative) to +4 (most positive).

    The distribution of a word is the share of raters who gave each of the nine ratings; its features are
    character n-grams (2 to 5 letters, TF-IDF) of its spelling, reduced to 128 dimensions by an SVD.

    C. J. Hutto, E. Gilbert. VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text.
    ICWSM 2014.
    """
    words, ratings = read_lexicon(lexicon_path())
    distributions = (ratings[:, :, None] == np.array(RATINGS)).mean(axis=1)
    label_names = tuple(f"{rating:+d}" if rating else "0" for rating in RATINGS)
    feature_names = tuple(f"spelling {j + 1}" for j in range(N_COMPONENTS))
    index = pd.Index(words, name="word")
    return Dataset(
        name=VADER_NAME,
        features=pd.DataFrame(spelling_features(words), index=index, columns=feature_names),
        distributions=pd.DataFrame(distributions, index=index, columns=label_names),
        feature_names=feature_names,
        label_names=label_names,
    )


def lexicon_path() -> Path:
    """The lexicon's file; raises ImportError with the extra to install where the package is absent."""
    # Found without importing the package, which would load an HTTP client.
    spec = find_spec("vaderSentiment")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("The VADER dataset ships inside vaderSentiment; install it with pip install 'hidldl[data]'.")
    return Path(spec.submodule_search_locations[0]) / "vader_lexicon.txt"


def read_lexicon(path: Path) -> tuple[list[str], np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """The words and their ten ratings each."""
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    # Columns: word, mean, standard deviation, the ten ratings as a list.
    return [line[0] for line in lines], np.array([json.loads(line[3]) for line in lines])


def spelling_features(
    words: list[str], n_components: int = N_COMPONENTS
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Character n-grams of words, reduced to a few dimensions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    n_grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True).fit_transform(words)
    return np.asarray(TruncatedSVD(n_components, random_state=0).fit_transform(n_grams))
