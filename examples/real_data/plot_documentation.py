"""
Real texts, with twenty pairs
=============================

The descriptions of 89 classes of scikit-learn, from four of its modules. They share many words, so the topics
overlap. A reader compared twenty pairs: the same topic or not? The tables count the texts of each module in
each cluster, without the pairs and with them.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import confusion_matrix
from sklearn.preprocessing import normalize

from linkwise import ConstrainedSpectralClustering, Constraints
from linkwise.metrics import match_clusters

modules = ["linear_model", "cluster", "ensemble", "preprocessing"]
texts, topic = [], []
for number, name in enumerate(modules):
    module = importlib.import_module(f"sklearn.{name}")
    for one in map(module.__dict__.get, module.__all__):
        if inspect.isclass(one) and one.__doc__:
            texts.append(inspect.getdoc(one).split("Examples\n")[0])
            topic.append(number)
topic = np.array(topic)

words = TfidfVectorizer(
    stop_words="english", token_pattern="[a-z]{4,}", min_df=2, max_df=0.5, sublinear_tf=True
)
X = normalize(TruncatedSVD(20, random_state=0).fit_transform(words.fit_transform(texts)))
pairs = Constraints.sample(topic, 20, random_state=0)  # your own pairs go here

model = ConstrainedSpectralClustering(4, random_state=0)
found = {
    "without pairs": model.fit(X).labels_,
    "with 20 pairs": model.fit(X, constraints=pairs).labels_,
}

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, (title, labels) in zip(panels, found.items(), strict=True):
    counts = confusion_matrix(topic, match_clusters(topic, labels).apply(labels))
    ax.imshow(counts, cmap="Blues", vmax=1.4 * counts.max())
    for (row, column), count in np.ndenumerate(counts):
        ax.text(column, row, str(count or ""), ha="center", va="center", fontsize=14)
    ax.set_title(f"{title}: {np.trace(counts)} of {len(topic)} right", fontsize=13)
    ax.set_xticks(range(4), [f"cluster {number}" for number in range(4)])
    ax.set_yticks(range(4), modules, fontsize=12)
plt.show()
