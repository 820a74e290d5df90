"""Settings of the whole suite."""

from hypothesis import settings

# Kernels compile on their first call, so a deadline would fail at random; a fixed seed keeps runs alike.
settings.register_profile("linkwise", deadline=None, derandomize=True)
settings.load_profile("linkwise")
