"""
A recovered row, and how sure it is
===================================

Ten people rated a word from −4 to +4. Half of the labels are hidden at random, and what is left is inflated to sum to
1. Here are a good, a typical and a bad recovery: the words at the quartiles of the error.
"""

import matplotlib.pyplot as plt
import numpy as np

from hidldl import MEASURES, BayesHidLDL, hide_labels, load_dataset, plot_recovery

data = load_dataset("VADER")
D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)

# %%
# ``BayesHidLDL()`` chooses its parameters itself. Giving the ones that it chooses here saves the search.

model = BayesHidLDL(nu=16, ridge=1, width=1, standardize=True, prior_rows=1, n_components=1, random_state=0)
model.fit(data.features, D_obs, observed=observed)

# %%
# Question marks are hidden labels, hatched bars are their recovered shares, and lines are 90 % intervals. The diamonds
# are the truth, which the model never saw. From top to bottom: good, typical, bad.

errors = MEASURES["chebyshev"].rows(data.distributions, model.distributions_)
by_error = data.features.index[np.argsort(errors)]

figure, axes = plt.subplots(3, 1, figsize=(7, 8.4))
for ax, quartile in zip(axes, (0.25, 0.5, 0.75), strict=True):
    word = by_error[int(quartile * len(by_error))]
    plot_recovery(model, word, ax=ax)
    ax.plot(np.arange(9) + 0.2, data.distributions.loc[word], "kD", ms=5)
for ax in axes[1:]:
    ax.get_legend().remove()
    ax.set_ylim(top=1.05)
plt.show()
