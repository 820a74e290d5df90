"""``tests/test_tutorial.py`` runs the tutorial, as the notebook that it offers."""

collect_ignore = ["tutorial.md"]
