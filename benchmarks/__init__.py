"""Speed against what a user would pick instead: ``make bench`` or ``make bench SECTION=graph``."""
