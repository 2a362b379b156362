"""
Rows that nobody has annotated yet
==================================

A fitted model predicts distributions for new rows from their features. If a new row already has some labels, the model
uses them too and keeps their proportions.
"""

import matplotlib.pyplot as plt
import numpy as np

from hidldl import MEASURES, BayesHidLDL, hide_labels, make_distributions

data = make_distributions(n_rows=600, n_features=5, n_labels=6, correlation=0.3, random_state=0)
X, D = data.features[:, :3], data.distributions  # two features are unknown, as some always are
X_old, X_new, D_old, D_new = X[:400], X[400:], D[:400], D[400:]

D_obs, observed = hide_labels(D_old, rate=0.5, random_state=0)
model = BayesHidLDL(random_state=0).fit(X_old, D_obs, observed=observed)

# %%
# The new rows are annotated label by label, and predicted again after each label.

order = np.random.default_rng(0).permuted(np.tile(np.arange(6), (len(D_new), 1)), axis=1)
errors = [MEASURES["chebyshev"].rows(D_new, model.predict(X_new))]
for count in range(2, 7):
    known = order < count
    shares = np.where(known, D_new, np.nan)
    shares /= np.nansum(shares, axis=1, keepdims=True)
    errors.append(MEASURES["chebyshev"].rows(D_new, model.predict(X_new, shares)))

figure, ax = plt.subplots()
ax.boxplot(
    errors, tick_labels=["none", "2", "3", "4", "5", "all 6"], showfliers=False, medianprops={"color": "#D55E00"}
)
ax.set(xlabel="labels that were annotated", ylabel="Chebyshev distance to the truth")
plt.show()
