"""Fashion-MNIST: pictures of clothes from a shop, 28 x 28 grey pixels, with the files and the split of MNIST."""

from pathlib import Path

from vitbench.datasets import DATASETS, Arrays, DatasetMeta
from vitbench.datasets._idx import IdxFile
from vitbench.datasets._published import Published
from vitbench.spec import Duplicates, ImageSpec

PUBLISHED = Published(
    dataset="fashion_mnist",
    files=(IdxFile("train-images-idx3-ubyte", (60_000, 28, 28),
                   "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
           IdxFile("train-labels-idx1-ubyte", (60_000,),
                   "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
           IdxFile("t10k-images-idx3-ubyte", (10_000, 28, 28),
                   "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
           IdxFile("t10k-labels-idx1-ubyte", (10_000,),
                   "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34")),
    debian_package="dataset-fashion-mnist",
    debian_folder=Path("/usr/share/datasets/fashion-mnist"),
    torchvision_class="FashionMNIST",
)

META = DatasetMeta(
    version=1,
    image=ImageSpec(size=28, channels=1),
    class_names=("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
                 "Ankle boot"),
    train_counts=(6000,) * 10,
    test_counts=(1000,) * 10,
    source="Zalando Research, github.com/zalandoresearch/fashion-mnist",
    licence="MIT",
    citation="H. Xiao, K. Rasul, R. Vollgraf (2017). Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
             "Learning Algorithms. arXiv:1708.07747",
    split="official: 60,000 training and 10,000 test images",
    # Clothes stay what they are when mirrored (a shoe points either way), tilted, lit otherwise or partly hidden.
    keeps_labels=("shift", "flip", "rotate", "shear", "intensity", "contrast", "sharpness", "invert", "erase", "mixup",
                  "cutmix"),
    duplicates=Duplicates(test_in_train=0, within_train=0),
    sha256="4d4827415616c3a9a6014128a97566d690012807d3445dce979d43b38294029b",
    at_hand=PUBLISHED.at_hand,
)


@DATASETS.add("fashion_mnist", META)
def fashion_mnist() -> Arrays:
    """60,000 training and 10,000 test images, grey levels 0-255."""
    return PUBLISHED.arrays()
