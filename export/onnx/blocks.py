"""Matrices of weights in blocks of 32 numbers with few bits, a scale and perhaps an offset."""

import dataclasses
import typing
from collections.abc import Callable

import numpy as np

BLOCK = 32  # weights that share a scale
LOWEST, HIGHEST = -8, 7  # codes in 4 bits, stored with 8 added
LARGEST = 127  # of a code in 8 bits, stored with 128 added
# Scales to choose from, in units of the one with which the number of largest magnitude is `LOWEST`.
TRIED = np.linspace(0.7, 1.15, 19, dtype=np.float32)
# Ranges to choose from, in units of the one from the smallest to the largest number of a block.
RANGES = np.linspace(1, 0.7, 13, dtype=np.float32)
HALF_EPSILON = 2.0**-11  # relative error of a number in float16, within its normal range


class RoundedBlocks(typing.NamedTuple):
    """A matrix `[N, K]`, whose numbers are `code * scale + offset`.

    Codes are stored with half of their range added: 8 or 128.
    """

    codes: np.ndarray  # [N, blocks, BLOCK * bits / 8], uint8; in 4 bits the first is the lower half
    scales: np.ndarray  # [N, blocks], float32 or float16
    offsets: np.ndarray | None = None  # [N, blocks], float32 or float16


@dataclasses.dataclass(frozen=True)
class Rounding:
    """A form in which matrices are stored.

    Args:
        bits: 4 or 8, of a code.
        blocks: Function that returns the `RoundedBlocks` of a matrix `[N, K]`, float32.
    """

    bits: int
    blocks: Callable[[np.ndarray], RoundedBlocks]


def codes_and_scales(matrix: np.ndarray) -> RoundedBlocks:
    """Returns a matrix in 4 bits, with the scale of smallest squared error for each block.

    Args:
        matrix: `[N, K]`, float32.
    """
    blocks = _in_blocks(matrix)
    largest = np.abs(blocks).argmax(-1, keepdims=True)
    peaks = np.take_along_axis(blocks, largest, -1) / LOWEST  # [N, blocks, 1]
    peaks = np.where(peaks == 0, np.float32(1), peaks)
    codes, scales = np.zeros(blocks.shape, np.int8), np.zeros_like(peaks)
    lowest = np.full(peaks.shape, np.inf, np.float32)  # error so far
    for factor in TRIED:
        tried = peaks * factor
        rounded = np.clip(np.rint(blocks / tried), LOWEST, HIGHEST)
        errors = np.square(rounded * tried - blocks).sum(-1, keepdims=True)
        better = errors < lowest
        codes = np.where(better, rounded.astype(np.int8), codes)
        scales, lowest = np.where(better, tried, scales), np.where(better, errors, lowest)
    return RoundedBlocks(_halves(codes), scales[..., 0])


def with_offsets(matrix: np.ndarray) -> RoundedBlocks:
    """Returns a matrix in 4 bits, with the best of several scales and offsets for each block.

    With the whole range of a block, the numbers are those of llama.cpp's format Q4_1. A matrix
    whose numbers were rounded in that format keeps them, up to the rounding of an offset, which is
    stored for the code 0 instead of -8.

    Args:
        matrix: `[N, K]`, float32.
    """
    blocks = _in_blocks(matrix)
    low, high = (limit(-1, keepdims=True) for limit in (blocks.min, blocks.max))  # [N, blocks, 1]
    codes = np.zeros(blocks.shape, np.int8)
    scales, offsets = np.ones_like(low), np.zeros_like(low)
    lowest = np.full(low.shape, np.inf, np.float32)  # error so far
    for factor in RANGES:
        lost = (high - low) * (1 - factor) / 2  # on both sides of the range
        step = _in_half((high - low) * factor / (HIGHEST - LOWEST)).astype(np.float32)
        middle = _in_half(low + lost - LOWEST * step).astype(np.float32)
        divisor = np.where(step == 0, np.float32(1), step)  # of equal numbers: code and step are 0
        rounded = np.clip(np.rint((blocks - middle) / divisor), LOWEST, HIGHEST)
        errors = np.square(rounded * step + middle - blocks).sum(-1, keepdims=True)
        better = errors < lowest
        codes = np.where(better, rounded.astype(np.int8), codes)
        scales, offsets = np.where(better, step, scales), np.where(better, middle, offsets)
        lowest = np.where(better, errors, lowest)
    return RoundedBlocks(_halves(codes), _in_half(scales[..., 0]), _in_half(offsets[..., 0]))


def in_8_bits(matrix: np.ndarray) -> RoundedBlocks:
    """Returns a matrix in 8 bits, with a scale for each block, as in llama.cpp's format Q8_0.

    Args:
        matrix: `[N, K]`, float32.
    """
    blocks = _in_blocks(matrix)
    scales = _in_half(np.abs(blocks).max(-1, keepdims=True) / LARGEST)
    steps = np.where(scales == 0, np.float32(1), scales.astype(np.float32))
    codes = np.clip(np.rint(blocks / steps), -LARGEST, LARGEST).astype(np.int16)
    return RoundedBlocks((codes + LARGEST + 1).astype(np.uint8), scales[..., 0])


SYMMETRIC = Rounding(4, codes_and_scales)
OFFSETS = Rounding(4, with_offsets)
BYTES = Rounding(8, in_8_bits)


def _in_blocks(matrix):
    """Returns a matrix as `[N, blocks, BLOCK]`, padded with zeros."""
    count, inner = matrix.shape
    return np.pad(matrix, ((0, 0), (0, -inner % BLOCK))).reshape(count, -1, BLOCK)


def _halves(codes):
    """Returns codes in 4 bits, two in a byte."""
    halves = (codes - LOWEST).astype(np.uint8)
    return halves[..., ::2] | halves[..., 1::2] << 4


def _in_half(numbers):
    """Returns numbers in float16, or unchanged if one of them is outside its normal range."""
    with np.errstate(over="ignore"):
        half = numbers.astype(np.float16)
    fits = np.abs(half.astype(np.float32) - numbers) <= HALF_EPSILON * np.abs(numbers)
    return half if fits.all() else numbers
