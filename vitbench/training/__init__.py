"""One run: subset, model, Lightning fit, curves, cost. Everything here may import torch."""
