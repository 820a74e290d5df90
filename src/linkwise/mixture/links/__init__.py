"""Links in a Gaussian mixture: E-step of linked rows, prior, mixing weights, noise, starts."""
