"""
K-means that never breaks a link
================================

COP-KMeans keeps every hard link, or proves that this is impossible. Left, k-means breaks links; right,
COP-KMeans keeps all of them. Three points that are pairwise linked apart do not fit into two clusters: the
error names them.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans

from linkwise import Constraints, COPKMeans
from linkwise.datasets import make_two_moons
from linkwise.displays import ClusterDisplay
from linkwise.exceptions import InfeasibleConstraints

X, y = make_two_moons(100, random_state=0)
links = Constraints.sample(y, 25, random_state=0)

plain = KMeans(2, n_init=10, random_state=0).fit(X)
model = COPKMeans(2, n_init=5, random_state=0).fit(X, constraints=links)
for name, labels in {"k-means": plain.labels_, "COP-KMeans": model.labels_}.items():
    print(f"links kept by {name}: {links.satisfaction(labels):.2f}")

try:
    COPKMeans(2).fit(X, constraints=Constraints(len(X), cannot_link=[(0, 4), (4, 9), (0, 9)]))
except InfeasibleConstraints as refusal:
    print("refused:", refusal)
    print("witness:", refusal.witness.cannot_link)

figure, axes = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained", sharey=True)
for ax, labels, name in zip(axes, [plain.labels_, model.labels_], ["k-means", "COP-KMeans"], strict=True):
    ClusterDisplay.from_predictions(X, labels, constraints=links, ax=ax)
    ax.set_title(name)
plt.show()
