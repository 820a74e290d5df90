"""A Gaussian mixture the slow way: entry by entry and two passes a step, in extended precision."""

from __future__ import annotations

import numpy as np

EXTENDED = np.longdouble


def random_covariances(rng, n_components, n_features, covariance_type):
    """Well-conditioned covariances of the type, and the same as (K, D, D) matrices."""
    spread = rng.uniform(0.5, 2.0, size=(n_components, n_features))
    noise = rng.normal(size=(n_components, n_features, n_features)) / np.sqrt(n_features)
    full = noise @ noise.transpose(0, 2, 1) + spread[:, :, np.newaxis] * np.eye(n_features)
    covariances = {
        "full": full,
        "tied": full[0],
        "diag": spread,
        "spherical": spread[:, 0],
    }[covariance_type]
    return covariances, as_matrices(covariances, covariance_type, n_components, n_features)


def as_matrices(covariances, covariance_type, n_components, n_features):
    """Covariances of any type as (K, D, D)."""
    if covariance_type == "full":
        return covariances
    if covariance_type == "tied":
        return np.repeat(covariances[np.newaxis], n_components, axis=0)
    if covariance_type == "diag":
        return np.stack([np.diag(variances) for variances in covariances])
    return np.stack([variance * np.eye(n_features) for variance in covariances])


def cholesky(matrix):
    """Lower triangular factor, entry by entry."""
    n = len(matrix)
    lower = np.zeros((n, n), dtype=EXTENDED)
    for i in range(n):
        for j in range(i + 1):
            rest = EXTENDED(matrix[i, j]) - lower[i, :j] @ lower[j, :j]
            lower[i, j] = np.sqrt(rest) if i == j else rest / lower[j, j]
    return lower


def log_densities(X, means, matrices):
    """log N(x; mu_k, Sigma_k) by forward substitution, (n, K)."""
    X = np.asarray(X, dtype=EXTENDED)
    result = np.empty((len(X), len(means)), dtype=EXTENDED)
    for k, (mean, matrix) in enumerate(zip(means, matrices, strict=True)):
        lower = cholesky(matrix)
        deviations = X - np.asarray(mean, dtype=EXTENDED)
        solution = np.zeros_like(deviations)
        for i in range(len(lower)):
            solution[:, i] = (deviations[:, i] - solution[:, :i] @ lower[i, :i]) / lower[i, i]
        log_determinant = np.log(np.diag(lower)).sum()
        result[:, k] = -0.5 * (solution**2).sum(axis=1) - log_determinant
        result[:, k] -= 0.5 * len(lower) * np.log(2 * EXTENDED(np.pi))
    return result


def posterior(X, weights, means, matrices):
    """Responsibilities (n, K) and log-likelihood of every point."""
    joint = log_densities(X, means, matrices) + np.log(np.asarray(weights, dtype=EXTENDED))
    largest = joint.max(axis=1, keepdims=True)
    log_likelihood = largest[:, 0] + np.log(np.exp(joint - largest).sum(axis=1))
    return np.exp(joint - log_likelihood[:, np.newaxis]), log_likelihood


def maximise(X, responsibilities, covariance_type, reg_covar):
    """Weights, means and covariances: the means first, then the scatter about the new means."""
    X = np.asarray(X, dtype=EXTENDED)
    counts = responsibilities.sum(axis=0)
    means = responsibilities.T @ X / counts[:, np.newaxis]
    scatter = np.stack(
        [
            (q[:, np.newaxis] * (X - mean)).T @ (X - mean)
            for q, mean in zip(responsibilities.T, means, strict=True)
        ]
    )
    full = scatter / counts[:, np.newaxis, np.newaxis] + reg_covar * np.eye(X.shape[1])
    covariances = {
        "full": full,
        "tied": scatter.sum(axis=0) / counts.sum() + reg_covar * np.eye(X.shape[1]),
        "diag": np.diagonal(full, axis1=1, axis2=2),
        "spherical": np.diagonal(full, axis1=1, axis2=2).mean(axis=1),
    }[covariance_type]
    return counts / counts.sum(), means, covariances


def em_step(X, weights, means, covariances, covariance_type, reg_covar):
    """One iteration: new weights, means, covariances, and the log-likelihood before it."""
    matrices = as_matrices(covariances, covariance_type, len(means), np.shape(X)[1])
    responsibilities, log_likelihood = posterior(X, weights, means, matrices)
    return *maximise(X, responsibilities, covariance_type, reg_covar), log_likelihood.sum()
