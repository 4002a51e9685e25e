"""Attention and its parts in a few lines of float64 NumPy, loops and all: what the modules are held against."""

import numpy as np


def score(query_NK: np.ndarray, key_NK: np.ndarray, kind: str, direction_K: np.ndarray | None) -> np.ndarray:
    if kind == "additive":
        return np.array([[direction_K @ np.tanh(q + k) for k in key_NK] for q in query_NK])
    return query_NK @ key_NK.T / (np.sqrt(query_NK.shape[1]) if kind == "scaled_dot" else 1)


def weights(score_NN: np.ndarray, seen_NN: np.ndarray, kind: str) -> np.ndarray:
    out = np.zeros_like(score_NN)
    for i, (row, seen) in enumerate(zip(score_NN, seen_NN, strict=True)):
        s, n = row[seen], seen.sum()
        out[i, seen] = {"softmax": np.exp(s - s.max()) / np.exp(s - s.max()).sum(), "relu": np.maximum(s, 0) / n,
                        "sigmoid": 1 / (1 + n * np.exp(-s)), "none": s / n}[kind]
    return out


def seen(height: int, width: int, kind: str, window: int | None, extra: int) -> np.ndarray:
    places = [(y, x) for y in range(height) for x in range(width)]
    N = len(places)
    out = np.zeros((N + extra, N + extra), dtype=bool)
    for i in range(N + extra):
        for j in range(N + extra):
            if kind == "window" and i < N:
                out[i, j] = j < N and max(abs(a - b) for a, b in zip(places[i], places[j], strict=True)) <= window // 2
            else:
                out[i, j] = j <= i if kind == "causal" else True
    return out


def rotated(x_NK: np.ndarray, width: int, tokens: int) -> np.ndarray:
    """Axial rotary positions: pairs (2i, 2i+1); K // 4 pairs turn with the row, then as many with the column."""
    out, P = x_NK.copy(), x_NK.shape[1] // 4
    for n in range(tokens):
        for axis, place in enumerate(divmod(n, width)):
            for p in range(P):
                angle, i = place * 100.0 ** (-p / P), 2 * (axis * P + p)
                z = complex(x_NK[n, i], x_NK[n, i + 1]) * np.exp(1j * angle)
                out[n, i], out[n, i + 1] = z.real, z.imag
    return out


def sinusoids(place: int, D: int) -> np.ndarray:
    return np.array([(np.sin if d % 2 == 0 else np.cos)(place / 10_000 ** ((d - d % 2) / D)) for d in range(D)])


def relative(table_HO: np.ndarray, height: int, width: int) -> np.ndarray:
    places = [(y, x) for y in range(height) for x in range(width)]
    table_HYX = table_HO.reshape(len(table_HO), 2 * height - 1, 2 * width - 1)
    return np.stack([[[table[ky - qy + height - 1, kx - qx + width - 1] for ky, kx in places] for qy, qx in places]
                     for table in table_HYX])
