"""
From a GeoTIFF to a better legend
=================================

Satellite images of one season, and 300 places where somebody wrote down what grows there. The legend has one
name, "crops", for fields of corn and of cotton. The belief is that crops may be several classes. CPPC finds
that they are two, and ``linkwise.raster`` draws both maps. The images of this example are made up; ``linkwise
map`` does the same from files on the command line.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rasterio
from scipy.spatial import cKDTree
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import CPPC, ClassBeliefs
from linkwise.displays import ClassMapDisplay
from linkwise.raster import areas, classify, read_stack, training_rows

# A scene of 90 fields: greenness on six dates, times 10000, as a GeoTIFF with 30 m pixels.
rng = np.random.default_rng(3)
height, width = 160, 240
kinds = np.array(["corn", "cotton", "forest", "pasture"])
seasons = np.array([[2, 6, 8, 7, 3, 2], [2, 3, 5, 8, 8, 4], [8, 8, 8, 8, 7, 8], [5, 6, 6, 6, 5, 4]])
centres = rng.uniform(0, (height, width), size=(90, 2))
rows, columns = np.mgrid[:height, :width]
truth = rng.choice(4, 90, p=[0.35, 0.25, 0.25, 0.15])[
    cKDTree(centres).query(np.stack([rows, columns], -1))[1]
]
images = 1000 * seasons[truth] + rng.normal(0, 700, (height, width, 6))
path = f"{tempfile.mkdtemp()}/season.tif"
place = {"crs": "EPSG:32721", "transform": rasterio.Affine(30, 0, 600_000, 0, -30, 8_700_000)}
with rasterio.open(path, "w", count=6, height=height, width=width, dtype="int16", **place) as file:
    file.write(np.moveaxis(images, 2, 0).astype("int16"))
    file.descriptions = [f"2024-{month:02}-15" for month in range(1, 7)]

# Samples with the coarse legend.
spots = rng.integers(0, (height, width), size=(300, 2))
samples = pd.DataFrame({"x": 600_000 + 30 * (spots[:, 1] + 0.5), "y": 8_700_000 - 30 * (spots[:, 0] + 0.5)})
samples["true"] = kinds[truth[spots[:, 0], spots[:, 1]]]
samples["class"] = samples["true"].replace({"corn": "crops", "cotton": "crops"})

stack = read_stack(path)
training = training_rows(stack, samples, label="class")
keep = ClassBeliefs.keep(np.unique(training.y))
legends = {"as it was": keep, "crops may be several": keep.keep_whole("crops", strength=0.1)}

figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
for ax, (title, beliefs) in zip(axes, legends.items(), strict=True):
    model = make_pipeline(StandardScaler(), CPPC(beliefs=beliefs, random_state=0)).fit(training.X, training.y)
    found = classify(stack, model, smooth=0.7)
    names = dict(enumerate(model[-1].report().legend, start=1))
    ClassMapDisplay.from_raster(found, class_names=names, ax=ax)
    index = adjusted_rand_score(truth.ravel(), found["classes"].values.ravel())
    ax.set_title(f"{title}: {len(names)} classes, Rand index {index:.2f}")
    for area in areas(found, names=list(names.values())):
        print(f"{title}: {area.name} {area.hectares:.0f} ha")
plt.show()
