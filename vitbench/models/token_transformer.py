"""Self-attention on pixels, patches or features as a sequence of vectors; every mechanism is an option."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from vitbench.models import MODELS, Card, Family, ModelError, ModelMeta, check_patch_size, patch_sizes
from vitbench.models._patches import PatchSize, nearest_window, patch_size, whole_image
from vitbench.spec import Frozen, ImageSpec
from vitbench.units import byte_text

if TYPE_CHECKING:
    from torch import nn

Share = Annotated[float, Field(ge=0, lt=1)]
MOST_ONE_HOT_BYTES = 2**24  # of one image: a batch of 64 then takes 1 GiB


class Options(Frozen):
    """Options of `token_transformer`; a size sets width, depth and heads."""

    tokens: Annotated[Literal["patch", "pixel", "conv_stem"], Field(
        description="what one vector is; conv_stem: features of convolutions, patch_size apart (a hybrid)")] = "patch"
    patch_size: PatchSize = None
    embedding: Annotated[Literal["linear", "one_hot", "lookup"], Field(
        description="of pixel values; one_hot and lookup: of their codes, which a table of trained vectors relates"
    )] = "linear"
    levels: Annotated[int, Field(ge=2, le=256)] | None = None  # steps of a channel's intensity; None: see `levels_of`
    code_dim: Annotated[int, Field(ge=1, le=256)] | None = None  # numbers of a looked-up vector; None: CODE_DIM
    embed_dim: Annotated[int, Field(ge=1, le=4096)] = 64
    depth: Annotated[int, Field(ge=1, le=64)] = 2
    num_heads: Annotated[int, Field(ge=1, le=4096)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 4.0
    score: Annotated[Literal["dot", "scaled_dot", "additive"], Field(
        description="how a query meets a key; scaled by the root of the head's width")] = "scaled_dot"
    normaliser: Annotated[Literal["softmax", "relu", "sigmoid", "none"], Field(
        description="from scores to weights; all but softmax scaled by the number of tokens seen")] = "softmax"
    positions: Annotated[Literal["none", "learned", "sinusoidal", "sinusoidal_2d", "relative", "rotary"], Field(
        description="sinusoidal: of the number in raster order; the last three are of two dimensions")] = "learned"
    span: Annotated[Literal["global", "window", "causal"], Field(
        description="which tokens a token sees: all, those around it, those before it in raster order")] = "global"
    window: Annotated[int, Field(ge=1, description="tokens a side of the window, odd")] | None = None
    pooling: Annotated[Literal["mean", "cls", "max", "attention"], Field(
        description="from the tokens to one vector; cls: an extra token")] = "mean"
    norm_place: Annotated[Literal["pre", "post"], Field(description="of LayerNorm: before a branch, or behind its sum")
                          ] = "pre"
    layer_scale: Annotated[float, Field(ge=0, le=1, description="first scale of each branch; 0: none")] = 0.0
    stochastic_depth: Annotated[Share, Field(description="of the last block, linear from the first on")] = 0.0
    dropout: Share = 0.0


CODE_DIM = 8


def token_side(options: Options, image: ImageSpec) -> int:
    """Pixels from one token to the next: 1, the chosen patch size, or the default at this image size."""
    return 1 if options.tokens == "pixel" else patch_size(options, image)


def levels_of(options: Options, image: ImageSpec) -> int:
    """The chosen steps of intensity; else 16 of grey, 4 a channel of colour (64 colours)."""
    return options.levels or (16 if image.channels == 1 else 4)


def _check(options: Options, image: ImageSpec) -> None:
    for refused in (_heads, _hidden, _tokens, _codes, _window, _rotary):
        refused(options, image)


def _heads(options: Options, _: ImageSpec) -> None:
    if options.embed_dim % options.num_heads:
        heads = [h for h in range(1, options.embed_dim + 1) if options.embed_dim % h == 0]
        raise ModelError(f"num_heads: should divide embed_dim {options.embed_dim}; found {options.num_heads}. "
                         f"The nearest that does is {_nearest(heads, options.num_heads)}")


def _hidden(options: Options, _: ImageSpec) -> None:
    if int(options.embed_dim * options.mlp_ratio) < 1:
        raise ModelError(f"mlp_ratio: {options.mlp_ratio} of embed_dim {options.embed_dim} leaves a perceptron without "
                         f"hidden numbers. The nearest that leaves one is {1 / options.embed_dim:.6g}")


def _tokens(options: Options, image: ImageSpec) -> None:
    side = token_side(options, image)
    if options.tokens == "pixel" and options.patch_size is not None:
        raise ModelError(f"patch_size: has no meaning with tokens pixel; found {options.patch_size}. Leave it out, or "
                         "take tokens patch")
    if options.tokens == "patch" and side == 1:
        raise ModelError("patch_size: a patch of 1 pixel is written tokens: pixel; found 1")
    halved = [p for p in patch_sizes(image) if p in (2, 4, 8, 16, 32, 64)]
    if options.tokens == "conv_stem" and side not in halved:
        raise ModelError(f"patch_size: with tokens conv_stem it is what pools of stride 2 leave, so one of "
                         f"{', '.join(map(str, halved))} at {image.size} pixels; found {side}")
    check_patch_size(side, image)


def _codes(options: Options, image: ImageSpec) -> None:
    coded = options.embedding != "linear"
    if coded and options.tokens == "conv_stem":
        raise ModelError(f"embedding: {options.embedding} is of pixel values, and tokens conv_stem are features; "
                         "allowed with it: linear")
    for option, only in (("levels", ("one_hot", "lookup")), ("code_dim", ("lookup",))):
        found = getattr(options, option)
        if found is not None and options.embedding not in only:
            raise ModelError(f"{option}: belongs to embedding {' or '.join(only)}; found {found} with embedding "
                             f"{options.embedding}")
    levels = levels_of(options, image)
    # Of one_hot the longest vectors, of lookup its table: both are as many as there are codes.
    needed = _code_bytes(options, image, levels) if coded else 0
    if needed > MOST_ONE_HOT_BYTES:
        fit = max(n for n in range(1, levels) if _code_bytes(options, image, n) <= MOST_ONE_HOT_BYTES)
        raise ModelError(
            f"levels: {levels} a channel are {levels**image.channels:,} codes, and {options.embedding} would take "
            f"{byte_text(needed)} for {'one image' if options.embedding == 'one_hot' else 'its table'}; at most "
            f"{byte_text(MOST_ONE_HOT_BYTES)}. The most that fit are {fit}")


def _code_bytes(options: Options, image: ImageSpec, levels: int) -> int:
    codes: int = levels**image.channels
    return 4 * codes * (image.size**2 if options.embedding == "one_hot" else options.code_dim or CODE_DIM)


def _window(options: Options, image: ImageSpec) -> None:
    most = whole_image(image.size // token_side(options, image))
    if options.span != "window":
        if options.window is not None:
            raise ModelError(f"window: belongs to span window; found {options.window} with span {options.span}")
    elif options.window is None:
        raise ModelError(f"window: span window needs one, odd, from 1 to {most} tokens a side here; found none")
    elif (fit := nearest_window(options.window, most)) != options.window:
        raise ModelError(f"window: should be odd and at most {most} tokens a side, where every token sees the whole "
                         f"image; found {options.window}. The nearest is {fit}")


def _rotary(options: Options, _: ImageSpec) -> None:
    head_dim = options.embed_dim // options.num_heads
    if options.positions == "rotary" and options.score == "additive":
        raise ModelError("positions: rotary turn queries and keys so that their product tells the offset; a score that "
                         "is additive has no product. Allowed with it: none, learned, sinusoidal, sinusoidal_2d, "
                         "relative")
    if options.positions == "rotary" and head_dim < 4:
        fit = [h for h in range(1, options.embed_dim + 1)
               if options.embed_dim % h == 0 and options.embed_dim // h >= 4]
        raise ModelError(f"num_heads: rotary positions need heads of 4 numbers or more; {options.num_heads} heads of "
                         f"embed_dim {options.embed_dim} have {head_dim}. "
                         + (f"The nearest that fits is {_nearest(fit, options.num_heads)}" if fit else "Widen it"))
    if options.positions == "sinusoidal_2d" and options.embed_dim < 4:
        raise ModelError(f"embed_dim: sinusoidal_2d positions need 4 or more, a sine and a cosine for rows and for "
                         f"columns; found {options.embed_dim}")


def _nearest(allowed: Iterable[int], found: int) -> int:
    return min(allowed, key=lambda one: abs(one - found))


def _family(options: Options) -> Family:
    return "hybrid" if options.tokens == "conv_stem" else "attention"


def _smaller(options: Options, image: ImageSpec) -> Iterator[dict[str, Any]]:
    """Larger patches, so fewer tokens; `_check` passes over those that do not go with the other options."""
    kind = {"tokens": "patch"} if options.tokens == "pixel" else {}
    yield from ({**kind, "patch_size": larger} for larger in patch_sizes(image) if larger > token_side(options, image))


def _card(options: Options, image: ImageSpec) -> Card:
    side = token_side(options, image)
    stem = "none"
    if options.tokens == "conv_stem":
        halvings = side.bit_length() - 1
        stem = f"{halvings} x (3x3 convolution, ReLU, pool of stride 2)"
    return {"stem": stem, "patch": side, "tokens": (image.size // side) ** 2,
            "normalisation": "LayerNorm", "positions": options.positions}


SIZES = {
    "xs": {"embed_dim": 28, "depth": 2, "num_heads": 2},
    "s": {"embed_dim": 64, "depth": 2, "num_heads": 4},
    "m": {"embed_dim": 104, "depth": 3, "num_heads": 4},
    "l": {"embed_dim": 176, "depth": 4, "num_heads": 4},
    "xl": {"embed_dim": 352, "depth": 4, "num_heads": 8},
}


META: dict[str, Any] = {"check": _check, "card": _card, "family_of": _family, "smaller": _smaller,
                        "regularisers": ("dropout", "stochastic_depth"), "imports": ("vitbench.nn.token_transformer",)}


@MODELS.add("token_transformer", ModelMeta("attention", options=Options, sizes=SIZES, **META))
def token_transformer(image: ImageSpec, num_classes: int, options: Options) -> "nn.Module":
    """Token transformer for `image`; about 20 k, 100 k, 400 k, 1.6 M, 6 M parameters at 28 x 28 x 1."""
    from vitbench.nn.token_transformer import Shape, TokenTransformer

    own = options.model_dump(exclude={"tokens", "patch_size", "levels", "code_dim"})
    shape = Shape(side=token_side(options, image), conv_stem=options.tokens == "conv_stem",
                  levels=levels_of(options, image), code_dim=options.code_dim or CODE_DIM, **own)
    return TokenTransformer(shape, channels=image.channels, image_size=image.size, num_classes=num_classes)
