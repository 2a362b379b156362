"""
A row, recovered, and how sure that is
======================================

Ten people rated a word from −4 to +4. Half of the labels are hidden at random, and what is left is blown up to sum to
1. Here are a good, a typical and a bad recovery: the words whose error is at the quartiles of all.
"""

import matplotlib.pyplot as plt
import numpy as np

from hidldl import MEASURES, BayesHidLDL, hide_labels, load_dataset

data = load_dataset("VADER")
D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)

# %%
# ``BayesHidLDL()`` chooses its parameters itself. These are what it chooses here; given, they save the search.

model = BayesHidLDL(nu=16, ridge=1, width=1, standardize=True, prior_rows=1, random_state=0)
model.fit(data.features, D_obs, observed=observed)
low, high, *_ = model.intervals(0.9)

# %%
# Question marks are hidden labels. Orange is what was handed in, blue what is recovered, with its 90 % interval; the
# diamonds are the truth, which the model never saw.

errors = MEASURES["chebyshev"].rows(data.distributions, model.distributions_)
good, typical, bad = (np.argsort(errors)[int(quartile * len(errors))] for quartile in (0.25, 0.5, 0.75))

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for ax, row, kind in zip(axes, (good, typical, bad), ("good", "typical", "bad"), strict=True):
    estimate = model.distributions_.iloc[row]
    positions = np.arange(len(estimate))
    whiskers = [(estimate - low.iloc[row]).clip(lower=0), (high.iloc[row] - estimate).clip(lower=0)]
    ax.bar(positions - 0.2, D_obs.iloc[row], width=0.4, color="#E69F00", label="handed in")
    ax.bar(positions + 0.2, estimate, width=0.4, color="#0072B2", label="recovered")
    ax.errorbar(positions + 0.2, estimate, whiskers, fmt="none", ecolor="0.4", capsize=2, label="90 % interval")
    ax.plot(positions + 0.2, data.distributions.iloc[row], "kD", ms=4, label="truth")
    for j in np.flatnonzero(~observed.iloc[row]):
        ax.annotate("?", (j - 0.2, 0), (0, 2), textcoords="offset points", ha="center", color="#D55E00", weight="bold")
    ax.set_xticks(positions, data.label_names)
    ax.set_title(f"{kind}: “{data.features.index[row]}”")
axes[0].set_ylabel("share of raters")
axes[0].legend()
plt.show()
