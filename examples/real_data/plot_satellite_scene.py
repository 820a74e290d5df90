"""
A landscape seen from space, with nine known places
===================================================

Heights of the land near Jacksboro, Tennessee, measured by radar from the Space Shuttle (a sample that comes
with matplotlib). Each pixel has the height and the roughness of its surroundings. Nine places are named by
hand (crosses): three on the plain, three on the plateau and three in the mountains. Left, the heights;
middle, a mixture without the places; right, a mixture with the places and with soft links between
neighbouring pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook
from scipy.ndimage import gaussian_filter
from sklearn.preprocessing import StandardScaler

from linkwise import PPC, Constraints
from linkwise.displays import ClassMapDisplay

height = cbook.get_sample_data("jacksboro_fault_dem.npz")["elevation"].astype(float)
mean = gaussian_filter(height, 8)
roughness = np.sqrt(gaussian_filter((height - mean) ** 2, 8))
mean, roughness = mean[::5, ::5], roughness[::5, ::5]
pixels = StandardScaler().fit_transform(np.column_stack([mean.ravel(), np.log(roughness).ravel()]))

places = {
    "plain": [(35, 70), (55, 75), (24, 62)],
    "plateau": [(10, 50), (20, 42), (14, 34)],
    "mountains": [(45, 20), (55, 40), (28, 30)],
}
known = np.full(mean.shape, None)
for name, spots in places.items():
    known[tuple(np.transpose(spots))] = name
links = Constraints.from_labels(known.ravel()) + Constraints.from_grid(mean.shape, certainty=0.95)

model = PPC(3, mixing="fixed", warm_start=True, n_init=3, random_state=0)
maps = {"without the places": model.fit_predict(pixels)}
maps["with nine places and neighbours"] = model.fit_predict(pixels, constraints=links)

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
axes[0].imshow(height[::5, ::5], cmap="terrain")
axes[0].set(title="height, 260 m to 1030 m", xticks=[], yticks=[])
for ax, (title, labels) in zip(axes[1:], maps.items(), strict=True):
    ClassMapDisplay.from_predictions(labels, mean.shape, class_names=list(model.cluster_names_), ax=ax)
    ax.set(title=title, xticks=[], yticks=[], xlabel="", ylabel="")
for ax in axes:
    for spots in places.values():
        ax.plot(*np.transpose(spots)[::-1], "kx")
plt.show()
