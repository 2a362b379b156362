"""Your own table: read it, complete it, see which rows lost most.

An empty cell in a label column is a hidden label. Here the table is written first, so that the example runs anywhere.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from hidldl import HidLDL, hide_labels, load_table, make_distributions

# A table as it might come from annotators: features, then label shares with gaps.
made = make_distributions(n_rows=300, n_features=4, n_labels=5, random_state=0)
shares, observed = hide_labels(made.distributions, rate=0.4, random_state=0)
table = pd.DataFrame(made.features, columns=["width", "height", "red", "blue"])
table[["mood_joy", "mood_fear", "mood_anger", "mood_grief", "mood_calm"]] = np.where(observed, shares, np.nan)

with TemporaryDirectory() as folder:
    path = Path(folder) / "pictures.csv"
    table.to_csv(path, index=False)
    data = load_table(path, labels="mood_*")

model = HidLDL(alpha=1, tol=1e-2).fit(data.features, data.distributions)
print("Handed in, with gaps:", data.distributions.head(3).round(2), sep="\n")
print("\nComplete:", model.distributions_.head(3).round(2), sep="\n")
print("\nRows that lost most to hidden labels:", model.hidden_mass_.nlargest(3).round(2), sep="\n")
