"""
Your own table
==============

Read a table, complete it, and see which rows lost most. An empty cell in a label column is a hidden label.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hidldl import BayesHidLDL, hide_labels, load_table, make_distributions

# %%
# A table as it might come from annotators: features, then label shares with gaps. It is written first, so that the
# example runs anywhere.

made = make_distributions(n_rows=300, n_features=4, n_labels=5, random_state=0)
shares, observed = hide_labels(made.distributions, rate=0.4, random_state=0)
table = pd.DataFrame(made.features, columns=["width", "height", "red", "blue"])
table[["mood_joy", "mood_fear", "mood_anger", "mood_grief", "mood_calm"]] = np.where(observed, shares, np.nan)

with TemporaryDirectory() as folder:
    path = Path(folder) / "pictures.csv"
    table.to_csv(path, index=False)
    data = load_table(path, labels="mood_*")

print("Handed in, with gaps:", data.distributions.head(3).round(2), sep="\n")

# %%

model = BayesHidLDL(random_state=0).fit(data.features, data.distributions)
print("Complete:", model.distributions_.head(3).round(2), sep="\n")
print("\nRows that lost most to hidden labels:", model.hidden_mass_.nlargest(3).round(2), sep="\n")

# %%
# Thirty rows as stacked bars. Rows sum to 1 on both sides, but only the right one is complete.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
for ax, shown, title in zip(
    axes, (data.distributions.fillna(0), model.distributions_), ("handed in", "complete"), strict=True
):
    left = np.zeros(30)
    for label in shown:
        ax.barh(range(30), shown[label][:30], left=left, height=0.9, label=label.removeprefix("mood_"))
        left += shown[label][:30]
    ax.set(title=title, xlabel="share", xlim=(0, 1))
axes[0].set_ylabel("row")
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
