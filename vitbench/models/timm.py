"""Any model of timm, trained from scratch: `timm/resnet18`. Its names are read from timm's source, unimported."""

import importlib.util
import re
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from vitbench.models import MODELS, Card, Family, ModelError, ModelMeta, check_patch_size, default_patch_size
from vitbench.registry import UnknownName, nearest
from vitbench.spec import Frozen, ImageSpec

if TYPE_CHECKING:
    from torch import nn

    from vitbench.nn.timm_model import Fit


class Options(Frozen):
    """Options of every `timm/<name>`. A small stem has stride 1 and no pool."""

    patch_size: Annotated[int, Field(ge=1, le=64)] | None = None  # None: the published or the default one if smaller
    stem: Literal["auto", "published", "small"] = "auto"  # auto: small where the published leaves under 16 places


# By what lets places see each other in the blocks: attention; convolution; both; neither (an MLP, an LSTM, a pool).
# Convolutions that only cut patches, encode positions or shrink the image between stages do not count, so Swin and PVT
# are attention; those in the blocks do, so MobileViT and XCiT are hybrids, as are models that begin convolutional.
FILES: dict[Family, str] = {
    "attention": "beit cait convit crossvit davit deepseek_vit deit eva gemma4_vit hiera hieradet_sam2 mvitv2 "
                 "naflexvit nest pit pvt_v2 qwen3_vit swin_transformer swin_transformer_v2 swin_transformer_v2_cr tnt "
                 "twins vision_transformer vision_transformer_relpos vision_transformer_sam volo",
    "convolution": "byobnet convmixer convnext cspnet cspnext densenet dla dpn efficientnet fasternet focalnet "
                   "ghostnet hardcorenas hgnet hrnet inception_next inception_resnet_v2 inception_v3 inception_v4 "
                   "lcnetv2 mambaout mobilenetv3 nasnet nfnet pnasnet rdnet regnet repghost repvit res2net resnest "
                   "resnet resnetv2 rexnet selecsls senet sknet starnet tresnet vgg vovnet xception xception_aligned",
    "hybrid": "byoanet coat cpubone csatv2 edgenext efficientformer efficientformer_v2 efficientvim efficientvit_mit "
              "efficientvit_msra fastvit gcvit iformer levit lowformer maxxvit metaformer mobilenetv5 mobilevit "
              "nextvit shvit swiftformer tiny_vit visformer vision_transformer_hybrid vitamin xcit",
    "control": "mlp_mixer sequencer",
}
EXCEPTIONS: dict[str, Family] = {  # names that begin so are of another family than the rest of their file
    "convformer": "convolution", "poolformer": "control", "mobilenetv4_hybrid": "hybrid",
}
_REGISTERED = re.compile(r"^@register_model\b[^\n]*\n(?:@[^\n]*\n)*def (\w+)", re.MULTILINE)


@cache
def source_files() -> dict[str, str]:
    """Name of each model of the installed timm -> the file of timm that it stands in; imports nothing of timm."""
    spec = importlib.util.find_spec("timm")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [path for folder in folders for path in sorted(Path(folder, "models").glob("[!_]*.py"))]
    return {name: path.stem for path in files for name in _REGISTERED.findall(path.read_text(encoding="utf-8"))}


@cache
def version() -> int:
    """10031 for timm 1.0.31: another timm may build another model, so it names other runs (protocol rule 29)."""
    major, minor, patch = (int(part) for part in re.findall(r"\d+", metadata.version("timm"))[:3])
    return 10_000 * major + 100 * minor + patch


def meta(name: str) -> ModelMeta:
    """What is known of `timm/<name>`. Raises UnknownName, and ModelError where its family is not known."""
    plain, dot, tag = name.partition(".")
    if dot and plain in source_files():
        raise UnknownName(f"model 'timm/{name}': the tag {tag!r} names pretrained weights, and nothing here is "
                          f"pretrained; write timm/{plain}")
    if name not in source_files():
        raise UnknownName(f"unknown model 'timm/{name}'; the installed timm has {len(source_files()):,} names."
                          f"{nearest(f'timm/{name}', [f'timm/{n}' for n in source_files()], n=3)}")
    file = source_files()[name]
    exception = next((family for start, family in EXCEPTIONS.items() if name.startswith(start)), None)
    family = exception or next((family for family, files in FILES.items() if file in files.split()), None)
    if family is None:
        raise ModelError(f"name: the family of 'timm/{name}' is not known: its file {file}.py is newer than this "
                         "version of vitbench; add it to FILES in vitbench/models/timm.py")
    return ModelMeta(family, version(), options=Options, check=_check, card=partial(_card, name),
                     imports=("vitbench.nn.timm_model",))


def _check(options: Options, image: ImageSpec) -> None:
    if options.patch_size is not None:
        check_patch_size(options.patch_size, image)


def _fit(name: str, image: ImageSpec, options: Options) -> "Fit":
    from vitbench.nn.timm_model import choose
    from vitbench.nn.timm_published import CannotFit

    try:
        return choose(name, image, options.patch_size, default_patch_size(image), options.stem)
    except CannotFit as error:
        size = f"{image.size} x {image.size} x {image.channels}"
        option, colon, reason = str(error).partition(": ")
        named = colon and option in Options.model_fields
        raise ModelError(f"{option if named else 'name'}: timm/{name} cannot take images of {size}"
                         f"{' so' if named else ''}: {reason if named else error}") from error


def _card(name: str, options: Options, image: ImageSpec) -> Card:
    from vitbench.nn.timm_model import describe

    return describe(name, image, _fit(name, image, options))


@MODELS.add_open("timm", source_files, meta)
def timm(name: str, image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """The architecture alone: fresh weights, no dropout, no stochastic depth, patches or stem for small images."""
    from vitbench.nn.timm_model import build

    return build(name, image, num_classes, _fit(name, image, options))
