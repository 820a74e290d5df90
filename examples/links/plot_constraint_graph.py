"""
The graph of the links
======================

Links make a graph. Rows joined by hard must-links are a chunklet (grey ground) and always share a cluster.
Rows that no path joins are independent of each other, so inference works component by component. Here two
teachers sorted eight iris flowers each, and a colleague added some doubtful links.
"""

import matplotlib.pyplot as plt

from linkwise import PPC, Constraints
from linkwise.datasets import load_bundled
from linkwise.displays import ConstraintGraphDisplay

X, y = load_bundled("iris")
sorted_by_teachers = Constraints.from_teachers(y, n_teachers=2, subset_size=8, random_state=0)
doubtful = Constraints.sample(y, 12, flip=0.25, certainty=0.75, random_state=4)
links = sorted_by_teachers + doubtful
print(links)

model = PPC(3, n_init=5, random_state=0).fit(X, constraints=links)
print("inference:", model.inference_["method"], "exact" if model.inference_["exact"] else "approximate")

figure, ax = plt.subplots(figsize=(9.5, 5.6), layout="constrained")
ConstraintGraphDisplay.from_estimator(model, links, ax=ax)
plt.show()
