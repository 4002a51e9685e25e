"""What to change of a model so that its run fits: what the model itself proposes, nearest first."""

from collections.abc import Callable

from vitbench import datasets
from vitbench.cost import Footprint
from vitbench.grid import Resolved, Run, model_of
from vitbench.models import MODELS, ModelError, checked_footprint, resolve
from vitbench.registry import UnknownName
from vitbench.spec import split_version


def nearest_that_fits(run: Run, resolved: Resolved, fits: Callable[[Footprint], bool]) -> str | None:
    """'patch_size: 4', the first change of options with which the model `fits`; None where there is none.

    Loads torch. A plug-in that was not imported proposes nothing.
    """
    name, size, options = model_of(run)
    data, _ = datasets.resolve(split_version(resolved.dataset)[0], resolved.dataset_options)
    try:
        meta, (full, _) = MODELS.get(name).meta, resolve(name, size, options)
    except UnknownName:
        return None
    for changes in meta.smaller(full, data.image):
        try:
            found = checked_footprint(name, size, {**options, **changes}, data.image, data.num_classes)
        except ModelError:  # it does not go with the other options
            continue
        if fits(found):
            return ", ".join(f"{option}: {value}" for option, value in changes.items())
    return None
