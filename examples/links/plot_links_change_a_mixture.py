"""
Links change a mixture
======================

Four blobs, two clusters: the data alone do not say whether the rows or the columns belong together. A mixture
without links finds the rows. With twenty-four links that join the columns, the mixture finds the columns.
Broken links are red and crossed.
"""

import matplotlib.pyplot as plt

from linkwise import PPC, Constraints
from linkwise.datasets import make_four_blobs
from linkwise.displays import ClusterDisplay
from linkwise.metrics import clustering_accuracy

X, y = make_four_blobs(28, sd=0.5, spacing=2.3, random_state=7)
X = X * [1.0, 1.25]
# Twelve links of another draw were all kept by a mixture that still took the rows.
links = Constraints.sample(y, 24, random_state=32)

without = PPC(2, n_init=10, random_state=0).fit(X)
linked = PPC(2, n_init=10, random_state=0).fit(X, constraints=links)

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, model, title in zip(axes, [without, linked], ["without links", "with 24 links"], strict=True):
    ClusterDisplay.from_estimator(model, X, constraints=links, ax=ax)
    ax.set_title(f"{title}: accuracy {clustering_accuracy(y, model.labels_):.2f}")
plt.show()
