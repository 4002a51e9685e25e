"""What a regime does to a dataset's images, to be looked at on the study's page."""

from io import BytesIO

import numpy as np
import torch
from PIL import Image
from torchvision.utils import make_grid

from vitbench import datasets
from vitbench.config import DatasetEntry
from vitbench.spec import Regime
from vitbench.streams import Streams
from vitbench.training.augment import Augmentation

CLASSES, DRAWS = 6, 8


def picture(dataset: DatasetEntry, regime: Regime) -> bytes:
    """A PNG grid: a row for each of the first classes, its first training image as it is and in eight draws.

    The same bytes each time. What is mixed into an image is the one of the row above, into the first the last. Raises
    ForbiddenRegime.
    """
    meta, _ = datasets.resolve(dataset.name, dataset.options)
    arrays = datasets.load(dataset.name, dataset.options)
    first = [int(np.argmax(arrays.train_labels == label)) for label in range(min(CLASSES, meta.num_classes))]
    images_NCSS, labels_N = torch.tensor(arrays.train_images[first]), torch.arange(len(first))
    columns = [images_NCSS]
    augmentation = Augmentation.of(regime, meta, Streams(0, 0, 0, 0), torch.device("cpu"))
    if augmentation is not None:
        fill_1C11 = images_NCSS.float().mean((0, 2, 3), keepdim=True)
        columns += [augmentation(step, images_NCSS, labels_N, fill_1C11)[0] for step in range(DRAWS)]
    shown = 3 if meta.image.channels == 3 else 1
    cells = torch.stack([column.float().round().clamp(0, 255).byte()[:, :shown] for column in columns], dim=1)
    grid = make_grid(cells.flatten(0, 1), nrow=len(columns), padding=1, pad_value=128)
    png = BytesIO()
    Image.fromarray((grid.permute(1, 2, 0) if shown == 3 else grid[0]).numpy()).save(png, "PNG")
    return png.getvalue()
