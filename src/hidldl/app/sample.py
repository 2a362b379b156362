"""A table to try things with, made when asked for: real words where they are installed, made-up faces elsewhere."""

from pathlib import Path

import numpy as np
import pandas as pd

from hidldl.datasets.generated import make_distributions
from hidldl.datasets.vader import lexicon_path, read_lexicon, spelling_features
from hidldl.hiding import hide_labels

RATE = 0.35
MOODS = {"very negative": (-4, -3), "negative": (-2, -1), "neutral": (0,), "positive": (1, 2), "very positive": (3, 4)}
EMOTIONS = ["joy", "sadness", "anger", "fear", "surprise"]


def write_sample(folder: Path) -> tuple[Path, str]:
    """Write the sample into the folder; the file, and what to call it."""
    try:
        features, D, name = _words(lexicon_path())
    except ImportError:
        features, D, name = _faces()
    D_obs, observed = hide_labels(D, rate=RATE, random_state=0)
    path = folder / "table.csv"
    features.round(4).join(D_obs.where(observed).round(6)).to_csv(path)
    return path, name


def _words(lexicon: Path) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Words with E, whose ten ratings each become shares of five moods; spelled alike often means rated alike."""
    words, ratings = read_lexicon(lexicon)
    chosen = [i for i, word in enumerate(words) if word.isalpha() and word.startswith("e") and len(word) > 3]
    index = pd.Index([words[i] for i in chosen], name="word")
    D = pd.DataFrame({mood: np.isin(ratings[chosen], of).mean(axis=1) for mood, of in MOODS.items()}, index=index)
    spelling = [f"spelling {j}" for j in range(1, 9)]
    return pd.DataFrame(spelling_features(list(index), 8), index, spelling), D, "moods of words.csv"


def _faces() -> tuple[pd.DataFrame, pd.DataFrame, str]:
    data = make_distributions(n_rows=300, n_features=6, n_labels=len(EMOTIONS), random_state=0)
    index = pd.Index([f"face-{i:03d}" for i in range(1, 301)], name="face")
    measures = [f"measure {j}" for j in range(1, 7)]
    return (
        pd.DataFrame(np.asarray(data.features), index, measures),
        pd.DataFrame(np.asarray(data.distributions), index, EMOTIONS),
        "made-up faces.csv",
    )
