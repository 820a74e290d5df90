"""Distortions of HMRF-KMeans: distances, centres and metrics."""
