"""Beliefs about classes in a Gaussian mixture: E-step, criteria, decisions and report."""
