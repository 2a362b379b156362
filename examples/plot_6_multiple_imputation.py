"""
Uncertainty that survives the analysis
======================================

Whoever computes something from a recovered table computes it from estimates. ``sample`` draws whole tables from the
posterior: run the analysis on each, and the results scatter as much as the hidden labels leave open. That is multiple
imputation.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from hidldl import BayesHidLDL, hide_labels, make_distributions

data = make_distributions(n_rows=150, n_features=4, n_labels=5, random_state=0)
D_obs, observed = hide_labels(data.distributions, rate=0.6, random_state=0)
model = BayesHidLDL(random_state=0).fit(data.features[:, :2], D_obs, observed=observed)
tables = model.sample(200, random_state=0)


# %%
# The analysis: how strongly do the first two labels vary together over the rows?


def analysis(D: NDArray[np.float64]) -> float:
    return float(np.corrcoef(D[:, 0], D[:, 1])[0, 1])


figure, ax = plt.subplots()
ax.hist([analysis(table) for table in tables], bins=25, alpha=0.5, label="tables drawn by sample()")
marks = {
    "the truth": (data.distributions, "k", "-"),
    "one recovered table": (model.distributions_, "#0072B2", "--"),
    "rows as handed in": (D_obs, "#E69F00", "-."),
}
for name, (table, color, style) in marks.items():
    ax.axvline(analysis(table), color=color, ls=style, label=name)
ax.set(xlabel="correlation of the first two labels", ylabel="tables")
ax.legend()
plt.show()
