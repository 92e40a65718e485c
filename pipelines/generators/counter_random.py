"""Random numbers by counter: what is drawn for an arc depends on the seed and the arc's number alone.

A generator with a state hands out its numbers in order, so whoever makes the middle of a graph has to make its
beginning first. Here a number is a function of (seed, stream, item, block), so that a graph may be cut into any pieces
and made by any number of workers, and comes out the same.

The function is Philox4x32-10 [1]_: ten rounds of two 32-bit products over a counter of four 32-bit words, keyed by two.
It passes the common batteries of tests and asks for nothing but 32-bit multiplication, which GPUs have too::

    key      seed mod 2^32, seed div 2^32
    counter  item mod 2^32, item div 2^32, block, stream

`scramble` permutes 0 .. n - 1 without a table: multiplication by an odd number, addition and ``x ^= x >> s`` are
bijections of b-bit numbers, and so are four rounds of them; with 2^b > n, walk on until a number is below n.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

# Streams: what a number is drawn for.
ENDS, WEIGHT, LABELS, POSITION, POTENTIAL, STREET = map(np.uint64, range(6))

_LOW = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 4  # of scrambling


# Inlined early, and with masks that say which halves are zero, the rounds become vector code: four times as fast.
@njit(nogil=True, cache=True, inline="always")
@no_type_check
def philox(key_0, key_1, a, b, c, d):
    """Philox4x32-10: four 32-bit words of the counter (a, b, c, d), all of them held in uint64."""
    for _ in range(10):
        x, y = _MULTIPLIER_0 * (a & _LOW), _MULTIPLIER_1 * (c & _LOW)
        a, b, c, d = (y >> _WORD) ^ b ^ key_0, y & _LOW, (x >> _WORD) ^ d ^ key_1, x & _LOW
        key_0, key_1 = (key_0 + _WEYL_0) & _LOW, (key_1 + _WEYL_1) & _LOW
    return a, b, c, d


@njit(nogil=True, cache=True, inline="always")
@no_type_check
def draw(seed, stream, item, block):
    """Four independent 32-bit words for an item; every argument and result is uint64, `block` below 2^32."""
    return philox(seed & _LOW, seed >> _WORD, item & _LOW, item >> _WORD, block, stream)


@njit(nogil=True, cache=True, inline="always")
@no_type_check
def below(n, high, low):
    """A number from 0 to n - 1 out of two words; n <= 2^32. Each is as likely as the next within n / 2^64."""
    return (high * n + ((low * n) >> _WORD)) >> _WORD


def scrambler(seed: int, n: int) -> np.ndarray:
    """What `scramble` needs to permute 0 .. n - 1, uint64 (3 + 2 rounds): n, mask, shift, then factors and terms."""
    bits = (n - 1).bit_length()
    rounds = []
    for block in range(_ROUNDS):
        words = [int(word) for word in draw(np.uint64(seed), LABELS, np.uint64(n), np.uint64(block))]
        rounds += [words[0] << 32 | words[1] | 1, words[2] << 32 | words[3]]
    return np.array([n, (1 << bits) - 1, (bits + 1) // 2, *rounds], dtype=np.uint64)


@njit(nogil=True, cache=True)
@no_type_check
def scramble(x, constants):
    """Where the permutation sends x (uint64, below n)."""
    n, mask, shift = constants[0], constants[1], constants[2]
    while True:
        for k in range(3, constants.size, 2):
            x = (x * constants[k] + constants[k + 1]) & mask
            x ^= x >> shift
        if x < n:
            return x


@njit(nogil=True, cache=True)
@no_type_check
def scramble_all(items, constants):
    """`scramble` every entry of an int64 array in place."""
    for i in range(items.size):
        items[i] = scramble(np.uint64(items[i]), constants)
