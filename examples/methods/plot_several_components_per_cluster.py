"""
Clusters that are not Gaussian
==============================

Each moon is far from Gaussian, so one Gaussian per cluster loses the tips of the moons, even with links.
With ``components_per_cluster=4`` links act on clusters of four Gaussians each, and the contours follow the
moons. The colours are the clusters that the fitted mixture predicts without the links.
"""

import matplotlib.pyplot as plt

from linkwise import PPC, Constraints
from linkwise.datasets import make_two_moons
from linkwise.displays import DensityDisplay
from linkwise.metrics import clustering_accuracy

X, y = make_two_moons(200, noise=0.12, random_state=0)
links = Constraints.sample(y, 60, overlap=True, random_state=0)

figure, axes = plt.subplots(1, 2, figsize=(13, 4.2), layout="constrained", sharey=True)
for ax, n_gaussians in zip(axes, [1, 4], strict=True):
    model = PPC(2, components_per_cluster=n_gaussians, n_init=4, random_state=0)
    model.fit(X, constraints=links)
    DensityDisplay.from_estimator(model, X, labels=model.predict(X), ax=ax)
    ax.set_title(
        f"components_per_cluster={n_gaussians}: accuracy {clustering_accuracy(y, model.predict(X)):.2f}"
    )
plt.show()
