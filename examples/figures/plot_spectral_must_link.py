"""
One must-link merges two clusters
=================================

Figure 2 of Lu & Carreira-Perpiñán (2008): three groups on a line and one must-link between two of them. The
link spreads to its neighbours, so that the affinities between the two whole groups rise, and the third
eigenvalue zero of the normalised Laplacian, which stands for a third cluster, disappears.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import ConstrainedSpectralClustering, Constraints

BLUE, ORANGE = "#0072B2", "#E69F00"

# %%
# Thirteen samples in each group. The link joins the 5th and the 20th sample, which are in the first and the
# second group; the third group has none.
rng = np.random.default_rng(0)
x = np.concatenate([np.sort(rng.normal(centre, 0.12, 13)) for centre in (0.0, 2.0, 4.0)])
link = Constraints(len(x), must_link=[(4, 19)])

# %%
# Before and after. The Laplacian's eigenvalues are one minus those of the normalised affinity.
figure, axes = plt.subplots(2, 3, figsize=(10, 5.8), layout="constrained")
for row, (title, links) in zip(axes, {"no link": None, "must-link 5–20": link}.items(), strict=True):
    model = ConstrainedSpectralClustering(
        6, algorithm="A", affinity="rbf", sigma=0.4, softness=0.3, random_state=0
    )
    model.fit(x[:, np.newaxis], constraints=links)
    row[0].imshow(model.affinity_matrix_, cmap="Greys", vmin=0.0, vmax=1.0, extent=(0.5, 39.5, 39.5, 0.5))
    row[0].set_title(f"affinities, {title}", fontsize=11)
    if links is not None:
        row[0].plot([5, 20], [20, 5], "o", markeredgecolor=ORANGE, markerfacecolor="none", markersize=9)
    laplacian = 1.0 - model.eigenvalues_
    zeros = int((laplacian < 1e-3).sum())
    row[1].plot(np.arange(1, 7), laplacian, "o", color=BLUE)
    row[1].set_ylim(-0.05, 1.05)
    row[1].set_title(f"{zeros} eigenvalues near zero", fontsize=11)
    clusters = ConstrainedSpectralClustering(
        zeros, algorithm="A", affinity="rbf", sigma=0.4, softness=0.3, random_state=0
    )
    labels = clusters.fit_predict(x[:, np.newaxis], constraints=links)
    for label, marker in zip(range(zeros), "os^", strict=False):
        here = labels == label
        row[2].plot(x[here], np.zeros(here.sum()), marker, color="black", fillstyle="none")
    if links is not None:
        first, second = x[[4, 19]]
        arc = np.linspace(0.0, np.pi, 50)
        row[2].plot((first + second) / 2 - (second - first) / 2 * np.cos(arc), 0.3 * np.sin(arc), color=BLUE)
    row[2].set_ylim(-0.4, 0.6)
    row[2].set_yticks([])
    row[2].set_title(f"{zeros} clusters", fontsize=11)
axes[1, 0].set_xlabel("sample")
axes[1, 1].set_xlabel("number of the eigenvalue")
axes[1, 2].set_xlabel("position")

plt.show()
