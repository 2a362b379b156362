"""
Which labels are overlooked together?
=====================================

These are two different questions. Which labels do annotators *overlook* together? The gaps tell. Which labels *vary*
together in what was annotated? ``covariance_`` tells. Labels that vary together help to recover each other.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from hidldl import BayesHidLDL, make_distributions

moods = ["joy", "calm", "hope", "fear", "grief", "anger"]
data = make_distributions(n_rows=600, n_features=5, n_labels=6, correlation=0.6, random_state=3)
D = pd.DataFrame(data.distributions, columns=moods)

# %%
# Suppose that the form had two pages, and that some annotators skipped the second one: fear, grief and anger.

rng = np.random.default_rng(0)
skipped = rng.random((len(D), 1)) < 0.4
observed = rng.random(D.shape) > np.where(skipped & np.isin(moods, ["fear", "grief", "anger"]), 0.85, 0.1)
observed[~observed.any(axis=1), 0] = True
D_obs = D.where(observed)
D_obs = D_obs.div(D_obs.sum(axis=1), axis=0)

# %%
# The model gets only two of the five features, so the covariance explains much of how labels vary.

model = BayesHidLDL(random_state=0).fit(data.features[:, :2], D_obs)
deviations = np.sqrt(np.diag(model.covariance_))
panels = {
    "overlooked together\n(correlation of the gaps)": D_obs.isna().corr().to_numpy(),
    "vary together\n(covariance_, as correlation)": model.covariance_ / np.outer(deviations, deviations),
}

figure, axes = plt.subplots(1, 2, figsize=(8, 3.8))
for ax, (title, matrix) in zip(axes, panels.items(), strict=True):
    image = ax.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu_r")
    ax.set_xticks(range(6), moods, rotation=45, ha="right")
    ax.set_yticks(range(6), moods)
    ax.set_title(title)
    ax.spines[:].set_visible(False)
figure.colorbar(image, ax=axes, shrink=0.8)
plt.show()
