"""Every estimator and other packages on the same links of many data sets."""
