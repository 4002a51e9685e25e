"""Verdicts: from a study's runs to contrasts between models, and by a rule fixed in advance to an outcome.

What claims are made of stands here, as what models are made of stands in nn: the files of claims/ are the claims.
"""
