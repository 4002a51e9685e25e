"""How large a token is, for a model that has tokens and for one that has none."""

from typing import TYPE_CHECKING

from vitbench.models import default_patch_size
from vitbench.record import RunRecord
from vitbench.spec import ImageSpec

if TYPE_CHECKING:
    from torch import Tensor


def token_side(record: RunRecord, images_BCSS: "Tensor") -> int:
    """Pixels of a token; of models without tokens those of a token transformer's default."""
    _, C, S, _ = images_BCSS.shape
    patch = record.card.get("patch")
    return patch if isinstance(patch, int) else default_patch_size(ImageSpec(S, C))
