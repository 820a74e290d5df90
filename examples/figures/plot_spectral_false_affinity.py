"""
Cannot-links and a third cluster
================================

Figure 4 of Lu & Carreira-Perpiñán (2008): cannot-links 5-15 and 16-35 on forty samples of a line. With two
clusters, 5 and 35 would have to be together, because 15 and 16 are neighbours, and algorithm A, which is made
for two clusters, makes 5 and 35 similar. With more clusters that is wrong. Algorithm B takes cannot-links one
at a time and keeps the smallest affinity.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import ConstrainedSpectralClustering, Constraints

RED = "#B03A00"

# %%
x = np.linspace(0.0, 4.0, 40)
links = Constraints(len(x), cannot_link=[(4, 14), (15, 34)])

figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
for ax, (title, algorithm, used) in zip(
    axes, [("no links", "A", None), ("algorithm A", "A", links), ("algorithm B", "B", links)], strict=True
):
    model = ConstrainedSpectralClustering(
        2, affinity="rbf", sigma=0.2, algorithm=algorithm, softness=0.3, random_state=0
    )
    affinity = model.fit(x[:, np.newaxis], constraints=used).affinity_matrix_
    ax.imshow(affinity, cmap="Greys", vmin=0.0, vmax=1.0, extent=(0.5, 40.5, 40.5, 0.5))
    ax.plot([5, 35], [35, 5], "o", markeredgecolor=RED, markerfacecolor="none", markersize=14)
    ax.set_title(f"{title}: affinity of 5 and 35 is {affinity[4, 34]:.2f}", fontsize=11)
    ax.set_xlabel("sample")

plt.show()
