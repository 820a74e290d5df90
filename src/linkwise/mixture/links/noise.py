"""How often links are wrong: who answered about which link, and the EM update of their error rates.

An answer of source s about a pair is wrong with probability e_s, whatever the other answers (as in Dawid &
Skene 1979). So each adds +-log((1 - e_s) / e_s) to the coupling of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import expit

from linkwise._arrays import Floats, Ints
from linkwise.constraints import Constraints
from linkwise.graph import unique_pairs

#: An error rate is kept inside [this, 1/2 - this]: at 0 links would turn hard, at 1/2 they say nothing.
_NOISE_MARGIN = 1e-6
#: The rate that the given certainties imply counts like this many answers of a source, so that the first
#: answer of a new annotator does not make them perfect or useless.
_PRIOR_ANSWERS = 2.0
#: Share of the posterior of a rate that its interval holds.
_INTERVAL = 0.9
_GRID = 256


def check_learn_noise(learn_noise: Any) -> bool | str:
    """The parameter as False, True, "kind" or "source"; numpy's booleans and 0 and 1 mean what they say."""
    value = learn_noise
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        value = value.item()
    if isinstance(value, Integral) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value in ("kind", "source"):
        return value
    if np.ndim(learn_noise) > 0:
        raise ValueError(
            "learn_noise is an array, which cross-validation cannot split: pass the names as "
            'Constraints(..., source=names) and learn_noise="source"'
        )
    raise ValueError(f'learn_noise is {learn_noise!r}: pass False, True, "kind" or "source"')


@dataclass(frozen=True)
class LinkNoise:
    """Answers about links, and the groups of answers that share an error rate.

    ``pair`` (J,) is the link of each answer among the ``pairs`` (m, 2) judged, ``coupling`` (J,) what EM
    starts from, ``group`` (J,) the number of its rate, -1 for answers whose rate is not learned (hard ones,
    and those of certainty 1/2). ``names`` (S,) are the groups. ``prior_rate`` (S,), worth ``prior_answers``
    answers, is what they start from.
    """

    kind: bool | str
    pairs: Ints
    pair: Ints
    coupling: Floats
    group: Ints
    names: tuple[str, ...]
    prior_rate: Floats
    prior_answers: float

    @classmethod
    def of(cls, learn_noise: bool | str, constraints: Constraints) -> LinkNoise:
        """The answers in the links, in the order of ``constraints.judgements``."""
        said = constraints.judgements
        pairs, pair = unique_pairs(constraints.n_samples, said.pairs)
        coupling = 2.0 * said.weights
        names: tuple[str, ...] = ("links",)
        group = np.zeros(len(coupling), dtype=np.int64)
        if learn_noise == "source":
            if said.source is None:
                raise ValueError(
                    'learn_noise="source" needs to know who judged each pair: build the links with '
                    "Constraints(..., source=names), or set learn_noise=True"
                )
            found, group = np.unique(said.source, return_inverse=True)
            names = tuple(found.tolist())
        elif learn_noise == "kind":
            names, group = ("must_link", "cannot_link"), np.where(coupling > 0, 0, 1)
        soft = np.isfinite(coupling) & (coupling != 0)
        # Sources may have few answers each. One rate for all links is their plain share of wrong ones.
        prior_answers = _PRIOR_ANSWERS if learn_noise == "source" else 0.0
        count = np.bincount(group[soft], minlength=len(names))
        said_rate = np.bincount(group[soft], expit(-np.abs(coupling[soft])), len(names))
        prior_rate = np.where(count > 0, said_rate / np.maximum(count, 1), np.nan)
        prior_rate = np.clip(prior_rate, _NOISE_MARGIN, 0.5 - _NOISE_MARGIN)
        if prior_answers:
            # EM starts inside the model: one rate for all answers of a source.
            odds = np.log((1.0 - prior_rate) / prior_rate)
            coupling = np.where(soft, np.sign(coupling) * odds[group], coupling)
        return cls(
            learn_noise, pairs, pair, coupling, np.where(soft, group, -1), names, prior_rate, prior_answers
        )

    def of_links(self, coupling: Floats) -> Floats:
        """Couplings (m,) of the links from those of the answers (J,)."""
        if len(self.pairs) == len(coupling):
            return coupling  # answers are in the order of the pairs
        attract, repel = self._two_sides(coupling)
        return attract - repel

    def _two_sides(self, coupling: Floats) -> tuple[Floats, Floats]:
        """What the answers "same" about each link sum up to, and the answers "different", (m,) each."""
        same = np.bincount(self.pair, np.maximum(coupling, 0.0), len(self.pairs))
        different = np.bincount(self.pair, np.maximum(-coupling, 0.0), len(self.pairs))
        return same.astype(np.float64, copy=False), different.astype(np.float64, copy=False)

    def log_likelihood(self, coupling: Floats) -> float:
        """Log P(answers | labels that do what most of the answers say), and the log-prior of the rates.

        The field subtracts abs(coupling) of a link where labels do the opposite.
        """
        value = -float(np.logaddexp(0.0, -np.abs(coupling)).sum())
        if len(self.pairs) < len(coupling):
            value -= float(np.minimum(*self._two_sides(coupling)).sum())
        if self.prior_answers:
            rates = self.rates(coupling)
            log_density = self.prior_rate * np.log(rates) + (1.0 - self.prior_rate) * np.log1p(-rates)
            value += self.prior_answers * float(np.nansum(log_density))
        return value

    def wrong_probability(self, agreement: Floats) -> Floats:
        """P(answer is wrong) of each answer (J,), from P(same) of each link (m,)."""
        same = agreement[self.pair]
        return np.where(self.coupling > 0, 1.0 - same, same)

    def learned(self, coupling: Floats, agreement: Floats) -> Floats:
        """Couplings (J,) after an M-step: a rate is the expected share of wrong answers, drawn to its prior.

        sign(coupling) log((1 - rate) / rate), the same for all answers of a group; others stay.
        """
        soft = self.group >= 0
        group = self.group[soft]
        wrong = np.bincount(group, self.wrong_probability(agreement)[soft], len(self.names))
        count = np.bincount(group, minlength=len(self.names))
        believed = self.prior_answers * self.prior_rate if self.prior_answers else 0.0
        share = (wrong + believed) / np.maximum(count + self.prior_answers, 1)
        rate = np.clip(share, _NOISE_MARGIN, 0.5 - _NOISE_MARGIN)
        learned = coupling.copy()
        learned[soft] = np.sign(coupling[soft]) * np.log((1.0 - rate) / rate)[group]
        return learned

    def rates(self, coupling: Floats) -> Floats:
        """Error rate (S,) of each group, whose log-odds are abs(coupling); NaN without soft answers."""
        rates = np.full(len(self.names), np.nan)
        soft = self.group >= 0
        rates[self.group[soft]] = expit(-np.abs(coupling[soft]))
        return rates

    def intervals(self, rates: Floats, wrong_probability: Floats) -> Floats:
        """Shortest interval (S, 2) of each rate that holds 90 % of its posterior, the other parameters fixed.

        If w_j is the probability that answer j is wrong under the rate e, its likelihood under another rate t
        is proportional to w_j t / e + (1 - w_j) (1 - t) / (1 - e): an answer that nothing confirms says
        nothing.
        """
        found = np.full((len(rates), 2), np.nan)
        for number, rate in enumerate(rates):
            if np.isfinite(rate):
                wrong = wrong_probability[self.group == number]
                prior = self.prior_answers * np.array(
                    [self.prior_rate[number], 1.0 - self.prior_rate[number]]
                )
                found[number] = _shortest_interval(rate, wrong, prior)
        return found


def _shortest_interval(rate: float, wrong: Floats, prior: Floats) -> tuple[float, float]:
    """Ends of the shortest interval of a rate, from its posterior on a grid of (0, 1/2), fine near it."""
    spread = np.sqrt(rate * (1.0 - rate) / (len(wrong) + 2.0))
    near = np.clip(rate + spread * np.linspace(-8.0, 8.0, _GRID), 0.0, 0.5)
    grid = np.unique(np.concatenate([0.5 * np.linspace(0.0, 1.0, _GRID) ** 2, near]))
    middle = 0.5 * (grid[1:] + grid[:-1])
    log_density = prior[0] * np.log(middle) + prior[1] * np.log1p(-middle)
    odds_wrong, odds_right = wrong / rate, (1.0 - wrong) / (1.0 - rate)
    for cell, value in enumerate(middle):
        log_density[cell] += np.log(odds_wrong * value + odds_right * (1.0 - value)).sum()
    mass = np.exp(log_density - log_density.max()) * np.diff(grid)
    order = np.argsort(-log_density)
    enough = int(np.searchsorted(np.cumsum(mass[order]), _INTERVAL * mass.sum())) + 1
    held = order[:enough]
    return float(grid[held.min()]), float(grid[held.max() + 1])
