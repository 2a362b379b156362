"""
Do intervals keep their promise?
================================

A 90 % interval should hold nine of ten true shares. Here labels are hidden, intervals of ten levels are computed, and
the true shares inside them are counted.
"""

import matplotlib.pyplot as plt
import numpy as np

from hidldl import BayesHidLDL, hide_labels, make_distributions

data = make_distributions(n_rows=400, n_features=5, n_labels=6, correlation=0.3, random_state=1)
levels = np.linspace(0.05, 0.95, 10)

# %%
# The intervals are calibrated on labels that are hidden again, in rows that the model has not seen. The true shares
# below take no part in that.

figure, ax = plt.subplots(figsize=(4.4, 4))
ax.plot([0, 1], [0, 1], color="0.6", ls=":", label="promised")
for rate in (0.3, 0.6):
    D_obs, observed = hide_labels(data.distributions, rate=rate, random_state=0)
    # Five features determine these data. The model gets three of them, so some uncertainty is left.
    model = BayesHidLDL(random_state=0).fit(data.features[:, :3], D_obs, observed=observed)
    held = []
    for level in levels:
        low, high, *_ = model.intervals(level)
        inside = (low <= data.distributions) & (data.distributions <= high)
        held.append(inside[~observed].mean())
    ax.plot(levels, held, "o-", ms=4, label=f"held, {rate:.0%} hidden")
ax.set(xlabel="level of the interval", ylabel="fraction of hidden shares inside", aspect="equal")
ax.legend()
plt.show()
