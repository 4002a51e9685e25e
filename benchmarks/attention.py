"""What attention costs: our transformer beside timm's, windows beside global, written out beside fused; turn by turn.

    python benchmarks/attention.py [--write]

One thread, fp32, random images. A step is forward, backward and AdamW. Prints a section; `--write` puts it into
docs/performance.md.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from pages import write
from timm.models import VisionTransformer
from torch import nn

from vitbench import models
from vitbench.nn.attention import SelfAttention
from vitbench.spec import ImageSpec

TITLE = "What attention costs"
ROUNDS, WARM_UP = 24, 2
Build = Callable[[], nn.Module]


def ours(image: ImageSpec, size: str, **options: object) -> nn.Module:
    return models.build("token_transformer", size, options, image, 10)


def written_out(image: ImageSpec, size: str, **options: object) -> nn.Module:
    model = ours(image, size, **options)
    for module in model.modules():
        if isinstance(module, SelfAttention):
            module.written_out = True
    return model


def timms(image: ImageSpec, size: str) -> nn.Module:
    """The same shape: patches, learned positions, pre-norm blocks, the mean over tokens, a linear head."""
    options, _ = models.resolve("token_transformer", size, {})
    model = VisionTransformer(
        img_size=image.size, patch_size=models.default_patch_size(image), in_chans=image.channels, num_classes=10,
        embed_dim=options.embed_dim, depth=options.depth, num_heads=options.num_heads, mlp_ratio=options.mlp_ratio,
        class_token=False, global_pool="avg", fc_norm=False)
    found, own = (sum(p.numel() for p in m.parameters()) for m in (model, ours(image, size)))
    assert found == own, f"another shape: {found} parameters, ours {own}"
    return model


def step_of(build: Build, image: ImageSpec, batch: int) -> Callable[[], None]:
    torch.manual_seed(0)
    model = build().train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    images, labels = torch.randn(batch, image.channels, image.size, image.size), torch.randint(10, (batch,))

    def step() -> None:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def compared(one: Build, other: Build, image: ImageSpec, batch: int) -> tuple[float, float, float]:
    """Median ms of a step of each, and the median ratio one / other of steps next to each other."""
    steps, times = [step_of(build, image, batch) for build in (one, other)], []
    for number in range(WARM_UP + ROUNDS):
        pair = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):  # neither always comes second
            began = time.perf_counter()
            steps[which]()
            pair[which] = time.perf_counter() - began
        times.append(pair)
    first, second = zip(*times[WARM_UP:], strict=True)
    ratios = [a / b for a, b in times[WARM_UP:]]
    return 1000 * statistics.median(first), 1000 * statistics.median(second), statistics.median(ratios)


def cases() -> list[tuple[str, str, Build, Build, ImageSpec, int]]:
    """What is compared, the ratio asked for, and both."""
    digits, fashion, found = ImageSpec(8, 1), ImageSpec(28, 1), []
    for name, image, sizes in (("8 px", digits, ("s", "l")), ("28 px", fashion, ("s", "m", "l"))):
        found += [(f"`token_transformer` {size} at {name} / timm's VisionTransformer of that shape", "1.05",
                   partial(ours, image, size), partial(timms, image, size), image, 64) for size in sizes]
    patches: dict[str, object] = {"patch_size": 2}
    for size, tokens, patch, batch in (("s", 49, {}, 64), ("s", 196, patches, 32), ("m", 196, patches, 16),
                                       ("s", 784, {"tokens": "pixel"}, 4)):
        found += [(f"window {window} / global, {size}, {tokens} tokens", "1.00" if tokens >= 196 else "",
                   partial(ours, fashion, size, span="window", window=window, **patch),
                   partial(ours, fashion, size, **patch), fashion, batch) for window in (3, 5, 7)]
        found.append((f"written out / fused, {size}, {tokens} tokens", "3.00",
                      partial(written_out, fashion, size, **patch), partial(ours, fashion, size, **patch), fashion,
                      batch))
    return found


def section() -> str:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # as in a run
    torch.utils.deterministic.fill_uninitialized_memory = False
    rows = []
    for what, asked, one, other, image, batch in cases():
        first, second, ratio = compared(one, other, image, batch)
        rows.append(f"| {what} | {asked} | {ratio:.2f} | {first:.1f} | {second:.1f} |\n")
        print(rows[-1], end="", flush=True)
    return (f"{TITLE}\n\nMade by `python benchmarks/attention.py --write`: training steps turn by turn in one run, one "
            f"thread, fp32; medians of {ROUNDS}.\n\n"
            "| step / step | asked for at most | ratio | ms | ms |\n| --- | ---: | ---: | ---: | ---: |\n"
            + "".join(rows))


if __name__ == "__main__":
    text = section()
    if "--write" in sys.argv:
        write(TITLE, text)
