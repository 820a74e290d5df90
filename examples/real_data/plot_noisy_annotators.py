"""
Which annotator errs, and where
===============================

Three annotators judge pairs of iris flowers, a third of them the same ones: Ann is wrong 3 % of the time,
Bob 15 % and Carl 35 %. The model does not know these rates. ``PPC(learn_noise="source")`` finds a rate for
each of them, with an interval (left; hollow: how many answers are really wrong), and a probability for every
answer that it is wrong (right): the wrong answers (crosses) are at the top of each list, so they are asked
about first.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import PPC, Constraints
from linkwise.datasets import load_bundled
from linkwise.displays import AnnotatorDisplay

X, y = load_bundled("iris")
true_rates = {"Ann": 0.03, "Bob": 0.15, "Carl": 0.35}

rng = np.random.default_rng(0)
every_pair = np.column_stack(np.triu_indices(len(y), k=1))
shared = rng.choice(every_pair, size=33, replace=False)
pairs = np.concatenate([np.vstack([shared, rng.choice(every_pair, size=67)]) for _ in true_rates])
annotator = np.repeat(list(true_rates), 100)
wrong = rng.random(300) < np.repeat(list(true_rates.values()), 100)
same = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong
links = Constraints(
    len(y), pairs[same], pairs[~same], certainty=0.8, source=[*annotator[same], *annotator[~same]]
)

model = PPC(3, n_init=5, learn_noise="source", random_state=0).fit(X, constraints=links)
said = links.judgements
is_wrong = (y[said.pairs[:, 0]] == y[said.pairs[:, 1]]) != (said.weights > 0)
for name in true_rates:
    low, high = model.noise_interval_[name]
    really = is_wrong[said.source == name].mean()
    print(f"{name}: learned {model.noise_[name]:.3f} ({low:.3f} to {high:.3f}), really wrong {really:.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 2])
display = AnnotatorDisplay.from_estimator(model, constraints=links, ax=left)
for place, name in enumerate(display.names_):
    really = is_wrong[said.source == name].mean()
    left.plot(really, place, "D", markersize=9, markerfacecolor="none", color="black")

for place, name in enumerate(true_rates):
    mine = said.source == name
    suspicion = model.answer_error_probability_[mine]
    order = np.argsort(suspicion)
    x = place + np.linspace(-0.38, 0.38, mine.sum())
    good = ~is_wrong[mine][order]
    right.scatter(x[good], suspicion[order][good], s=14, color="0.6", label="right" if place == 0 else None)
    right.scatter(
        x[~good],
        suspicion[order][~good],
        s=34,
        marker="x",
        color="#B00020",
        label="wrong" if place == 0 else None,
    )
right.set_xticks(range(3), list(true_rates))
right.set_ylabel("answer_error_probability_")
right.set_xlabel("answers of each annotator, sorted")
right.legend(frameon=False, loc="center left")
plt.show()
