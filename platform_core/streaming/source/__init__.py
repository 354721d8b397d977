"""How a release reads its inputs: `kind.py` is what the platform asks of every kind, `release.py` all kinds of one
release together, the other modules one kind each.
"""
