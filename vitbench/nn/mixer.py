"""timm's MLP-Mixer (Tolstikhin et al. 2021) in our sizes."""

from timm.models.mlp_mixer import MlpMixer


def mixer(*, channels: int, image_size: int, num_classes: int, patch_size: int, embed_dim: int,
          depth: int) -> MlpMixer:
    """Patches, blocks of two perceptrons, one over places and one over channels, with the published hidden widths of
    half and four times `embed_dim`, the mean over places, a linear head; no dropout, no stochastic depth."""
    return MlpMixer(in_chans=channels, img_size=image_size, num_classes=num_classes, patch_size=patch_size,
                    embed_dim=embed_dim, num_blocks=depth)
