"""
Methods on the same masks
=========================

Every method sees the same hidden labels, at several rates. The mean fill takes part too: it looks at no features, and a
method that does not beat it learns nothing from them. ``compare`` makes such a comparison in one call, with a page.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from hidldl import BayesHidLDL, HidLDL, IncomLDL, MeanFill, hide_labels, make_distributions, score

# Algorithm 1 stops after its 100 iterations, as in the paper, and says so each time.
warnings.simplefilter("ignore", ConvergenceWarning)

data = make_distributions(n_rows=200, n_features=6, n_labels=6, correlation=0.3, random_state=0)
X = np.column_stack([data.features, np.ones(200)])  # IncomLDL has no intercept; the constant gives it one
methods = {
    "MeanFill": MeanFill(),
    "IncomLDL": IncomLDL(),
    "HidLDL, alpha 4": HidLDL(alpha=4),
    "BayesHidLDL": BayesHidLDL(random_state=0),
}

rates = (0.2, 0.5, 0.8)
table = pd.DataFrame(index=["as handed in", *methods], columns=rates, dtype=float)
for rate in rates:
    D_obs, observed = hide_labels(data.distributions, rate=rate, random_state=0)
    table.loc["as handed in", rate] = score(data.distributions, D_obs)["chebyshev"]
    for name, method in methods.items():
        recovered = method.fit(X, D_obs, observed=observed).distributions_
        table.loc[name, rate] = score(data.distributions, recovered)["chebyshev"]
print("Chebyshev distance to the true rows (lower is better)", table.round(4), sep="\n")

# %%

figure, ax = plt.subplots()
for name in table.index:
    ax.plot(rates, table.loc[name], "o-", ms=4, label=name)
ax.set(xlabel="share of labels that are hidden", ylabel="Chebyshev distance to the truth", yscale="log", xticks=rates)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
