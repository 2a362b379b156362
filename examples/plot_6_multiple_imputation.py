"""
Analyses of a recovered table
=============================

A table of best guesses is smoother than the truth. An analysis that depends on how much rows *differ* goes wrong on it.
``sample`` draws whole tables from the posterior: run the analysis on each of them and combine the results. This is
multiple imputation.
"""

import matplotlib.pyplot as plt
import numpy as np

from hidldl import BayesHidLDL, hide_labels, make_distributions

data = make_distributions(n_rows=200, n_features=4, n_labels=5, random_state=0)
D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
model = BayesHidLDL(random_state=0).fit(data.features[:, :2], D_obs, observed=observed)  # two features are unknown
tables = model.sample(200, random_state=0)

# %%
# The analysis: how much does each label vary over the rows?

truth, recovered, handed_in = (table.std(axis=0) for table in (data.distributions, model.distributions_, D_obs))
drawn = tables.std(axis=1)
low, high = np.quantile(drawn, (0.05, 0.95), axis=0)

figure, ax = plt.subplots(figsize=(7.5, 3.4))
labels = np.arange(5)
ax.vlines(labels, low, high, lw=10, color="#0072B2", alpha=0.3, label="90 % of the drawn tables")
ax.plot(labels, drawn.mean(axis=0), "o", color="#0072B2", label="mean of the drawn tables")
ax.plot(labels, recovered, "_", color="#D55E00", ms=14, mew=2, label="the one recovered table")
ax.plot(labels, truth, "kD", ms=5, label="truth")
ax.set_xticks(labels, data.label_names)
ax.set_ylabel("standard deviation over rows")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Rows as handed in would be far outside the picture. The drawn tables treat the fitted mean and covariance as
# known, which they are not. So their range is too narrow, and the truth is outside more often than it should be.

for name, answer in {"handed in": handed_in, "recovered": recovered, "drawn, mean": drawn.mean(axis=0)}.items():
    print(f"{name:>12}: off by {np.abs(answer - truth).mean():.4f} on average")
print(f"truth within the range of the drawn tables: {np.sum((low <= truth) & (truth <= high))} of 5 labels")
