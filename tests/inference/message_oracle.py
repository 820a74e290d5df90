"""Belief propagation with full K x K tables, one message at a time: slow, obvious, for the message tests."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from linkwise.inference.messages.layout import targets


def link_table(problem, edge):
    """Log potential of a link as a K x K table, from the definition in potentials.py."""
    n_labels = problem.unary.shape[1]
    if problem.coupling.ndim == 1:
        c = problem.coupling[edge]
        table = np.full((n_labels, n_labels), -max(c, 0.0))
        np.fill_diagonal(table, min(c, 0.0))
    else:
        table = np.zeros((n_labels, n_labels))
        np.fill_diagonal(table, problem.coupling[edge])
    return table


def log_cavity(problem, messages, node, without=None):
    """Unary plus all messages to a node but one, in logarithms and not normalised."""
    h = problem.unary[node].copy()
    for (source, target), message in messages.items():
        if target == node and source != without:
            h = h + message
    return h


def dense_message(problem, messages, edge, source, target, combine=logsumexp):
    """One message from the full table; ``combine`` is logsumexp or np.max. Its largest entry is 0."""
    table = link_table(problem, edge) + log_cavity(problem, messages, source, without=target)[:, None]
    with np.errstate(divide="ignore"):
        message = combine(table, axis=0)
    return message - message.max()


def messages_by_name(problem, graph, table):
    """Messages of the fast code as ``{(source, target): (K,) logarithms with maximum 0}``."""
    n_labels = problem.unary.shape[1]
    rows = table.reshape(len(graph.edges), -1)[:, :n_labels]
    named, target = {}, targets(graph)
    for place, node in enumerate(graph.order):
        for slot in range(graph.indptr[place], graph.indptr[place + 1]):
            source = int(graph.order[target[slot]])
            highest = rows[slot].max()
            named[source, int(node)] = rows[slot] - (highest if highest > -np.inf else 0.0)
    return named


def worst_message_error(problem, messages, combine=logsumexp):
    """Largest difference between a message and what its sender's other messages say it should be."""
    worst = 0.0
    for edge, (i, j) in enumerate(problem.pairs.tolist()):
        for source, target in ((i, j), (j, i)):
            want = dense_message(problem, messages, edge, source, target, combine)
            have = messages[source, target]
            same = want == have
            worst = max(worst, float(np.abs(want[~same] - have[~same]).max(initial=0.0)))
    return worst


def flooding(problem, n_iter=2000, damping=0.5):
    """Sum-product by damped parallel updates of all messages until nothing moves; finite potentials only."""
    n, n_labels = problem.unary.shape
    linked = np.zeros((n, n, 1), dtype=bool)
    table = np.zeros((n, n, n_labels, n_labels))
    for edge, (i, j) in enumerate(problem.pairs.tolist()):
        linked[i, j] = linked[j, i] = True
        table[i, j] = table[j, i] = link_table(problem, edge)
    messages = np.zeros((n, n, n_labels))  # from the first to the second index
    for _ in range(n_iter):
        cavity = (problem.unary + messages.sum(axis=0))[:, None] - messages.transpose(1, 0, 2)
        fresh = logsumexp(table + cavity[..., None], axis=2)
        fresh = np.where(linked, fresh - fresh.max(axis=2, keepdims=True), 0.0)
        moved = np.abs(fresh - messages).max()
        messages = (1 - damping) * fresh + damping * messages
        if moved < 1e-14:
            break
    return {(i, j): messages[i, j] for i, j in zip(*np.nonzero(linked[..., 0]), strict=True)}


def node_belief(problem, messages, node):
    h = log_cavity(problem, messages, node)
    return np.exp(h - logsumexp(h))


def pair_belief(problem, messages, edge):
    """K x K table of the two ends of a link."""
    i, j = problem.pairs[edge].tolist()
    table = link_table(problem, edge)
    table = table + log_cavity(problem, messages, i, without=j)[:, None]
    table = table + log_cavity(problem, messages, j, without=i)[None, :]
    return np.exp(table - logsumexp(table))


def bethe_free_energy(problem, nodes, pairs):
    """-log Z of Bethe from beliefs: average energy minus entropies, nodes counted 1 - degree times."""

    def entropy(p):
        return -np.sum(p[p > 0] * np.log(p[p > 0]))

    def average(p, score):
        return np.sum(p[p > 0] * score[p > 0])

    degree = np.bincount(problem.pairs.ravel(), minlength=len(problem.unary))
    total = 0.0
    for node, belief in enumerate(nodes):
        total -= average(belief, problem.unary[node]) + (1 - degree[node]) * entropy(belief)
    for edge, belief in enumerate(pairs):
        total -= average(belief, link_table(problem, edge)) + entropy(belief)
    return total
