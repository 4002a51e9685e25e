"""A multi-head attention layer that computes a given convolution: one head looks at each place of the kernel."""

import torch
from torch import Tensor, nn

SHARPNESS = 60.0
"""exp(-60) of a weight leaks to each neighbour: in float64 nothing of it is left beside 1."""


class OtherConvolution(ValueError):
    """A convolution that the layer cannot be built from; the message says what it has and what is allowed."""


class AttentionAsConvolution(nn.Module):
    """Images B x C x H x W to B x D x H x W as `convolution` maps them (Cordonnier et al. 2020, theorem 1).

    Attention with relative positions alone, no look at content: the score of head h, for a query and a key that lies
    at an offset o from it, is v_h . r(o) with the encoding r(o) = (|o|^2, o_y, o_x) and v_h = -sharpness (1, -2 c_y,
    -2 c_x), which is -sharpness |o - c_h|^2 and a constant: softmax settles on the offset c_h, the head's place in
    the kernel (their lemma 1 and section 3.1). The head's value map is the kernel's matrix at that place.

    Zero padding: keys and values are the image with a border of tokens whose value is zero, and queries are the
    image's own places, so that an offset that leaves the image meets a zero as in the convolution. Nothing else has
    to be known of the border. Raises OtherConvolution for an even kernel, a stride, dilation, groups or other padding.
    """

    query_H3: Tensor
    value_HCD: Tensor
    bias_D: Tensor

    def __init__(self, convolution: nn.Conv2d, sharpness: float = SHARPNESS) -> None:
        super().__init__()
        _refuse(convolution)
        weight_DCkk = convolution.weight.detach()
        D, _, height, width = weight_DCkk.shape
        self.border = height // 2, width // 2
        centre_H2 = torch.cartesian_prod(torch.arange(height) - height // 2, torch.arange(width) - width // 2)
        query_H3 = torch.cat([torch.ones(height * width, 1), -2 * centre_H2], dim=1).to(weight_DCkk)
        self.register_buffer("query_H3", -sharpness * query_H3)
        self.register_buffer("value_HCD", weight_DCkk.flatten(2).permute(2, 1, 0).contiguous())
        self.register_buffer("bias_D", torch.zeros(D).to(weight_DCkk) if convolution.bias is None
                             else convolution.bias.detach().clone())

    def weights(self, height: int, width: int) -> Tensor:
        """Softmax weights heads x N x M: of the image's N places on the M of the image with its border."""
        (up, left), like = self.border, self.query_H3
        query_N2 = torch.cartesian_prod(torch.arange(height), torch.arange(width)).to(like)
        key_M2 = torch.cartesian_prod(torch.arange(-up, height + up), torch.arange(-left, width + left)).to(like)
        offset_NM2 = key_M2 - query_N2[:, None]
        encoding_NM3 = torch.cat([offset_NM2.square().sum(-1, keepdim=True), offset_NM2], dim=-1)
        return torch.softmax(torch.einsum("hr,nmr->hnm", like, encoding_NM3), dim=-1)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """Each head takes the values of its offset, the merge adds them."""
        (up, left), (height, width) = self.border, x_BCHW.shape[2:]
        token_BCM = nn.functional.pad(x_BCHW, (left, left, up, up)).flatten(2)
        value_BHMD = torch.einsum("bcm,hcd->bhmd", token_BCM, self.value_HCD)
        mixed_BHND = self.weights(height, width) @ value_BHMD
        merged_BND = mixed_BHND.sum(dim=1) + self.bias_D
        return merged_BND.mT.reshape(len(x_BCHW), -1, height, width)


def _refuse(convolution: nn.Conv2d) -> None:
    kernel, padding = tuple(convolution.kernel_size), convolution.padding
    wanted = tuple(side // 2 for side in kernel)
    faults = [f"{what} {found}; it should be {allowed}" for what, found, allowed, right in (
        ("kernel", kernel, "odd", all(side % 2 for side in kernel)),
        ("stride", convolution.stride, "1", set(convolution.stride) == {1}),
        ("dilation", convolution.dilation, "1", set(convolution.dilation) == {1}),
        ("groups", convolution.groups, "1", convolution.groups == 1),
        ("padding", padding, f"{wanted}", padding == "same" or tuple(padding) == wanted),
        ("padding_mode", convolution.padding_mode, "'zeros'", convolution.padding_mode == "zeros")) if not right]
    if faults:
        raise OtherConvolution(f"this convolution has {'; and '.join(faults)}")
