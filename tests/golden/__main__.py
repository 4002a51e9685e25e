"""`python -m tests.golden`: add new defaults, and the id of a spec that ids.json lacks one for."""

import sys

from tests.golden import GoldenChanged, regenerate

try:
    added = regenerate()
except GoldenChanged as error:
    sys.exit(f"nothing was written:\n{error}")
print("\n".join(f"added {name}" for name in added) or "nothing is new")
