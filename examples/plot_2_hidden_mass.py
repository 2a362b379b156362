"""
How much did each row lose?
===========================

A row with hidden labels still sums to 1, so the table does not show how much is missing. ``hidden_mass_`` estimates it,
row by row, and ``intervals`` says how sure that is.
"""

import matplotlib.pyplot as plt
import numpy as np

from hidldl import BayesHidLDL, hide_labels, make_distributions, plot_hidden_mass

data = make_distributions(n_rows=300, n_features=4, n_labels=8, correlation=0.3, random_state=0)
D_obs, observed = hide_labels(data.distributions, rate=0.4, random_state=0)
X = data.features[:, :2]  # two features are unknown, as some always are
model = BayesHidLDL(random_state=0).fit(X, D_obs, observed=observed)
plot_hidden_mass(model)
plt.show()

# %%
# How sure is that? Rows are in order of their estimated mass. The dots are the truth. Nine of ten should be in
# the band.

intervals = model.intervals(0.9)
truth = np.where(observed, 0, data.distributions).sum(axis=1)
order = np.argsort(model.hidden_mass_)
low, high = intervals.hidden_mass_low[order], intervals.hidden_mass_high[order]

figure, ax = plt.subplots()
rank = np.arange(len(order))
ax.fill_between(rank, low, high, alpha=0.3, lw=0, label="90 % interval")
ax.plot(rank, model.hidden_mass_[order], label="estimate")
ax.plot(rank, truth[order], "k.", ms=3, label="truth")
ax.set(xlabel="row, by estimated hidden mass", ylabel="mass of the hidden labels")
ax.legend()
plt.show()

lost = (~observed).any(axis=1)[order]
print(f"inside the interval: {np.mean((low <= truth[order]) & (truth[order] <= high), where=lost):.0%} of the rows")
