"""Proofs by batches of arcs: ties, which need an order, and what no order proves."""

import numpy as np
import pytest
from families import usual

from gpuops import VerificationError
from gpuops.certificates import RowProof


def proven(xp, distances, arcs, predecessors=None, passes=9, dtype="float32"):
    """Passes over arcs (tails, heads, weights) one at a time, in the order given, until all is proven."""
    row = xp.asarray(np.array(distances, dtype))
    before = None if predecessors is None else xp.asarray(np.array(predecessors, np.int32))
    proof = RowProof(row, [0], before)
    for number in range(1, passes + 1):
        for tail, head, weight in arcs:
            proof.test(
                xp.asarray(np.array([tail])), xp.asarray(np.array([head])), xp.asarray(np.array([weight], dtype))
            )
        if not len(proof.lacking()):
            return number
    proof.refuse_lacking()
    return None


@pytest.mark.parametrize("dtype", usual(["float32", "float64", "int32"]))
def test_ties_are_proven_one_after_another(xp, dtype):
    chain = [(0, 1, 3), (1, 2, 0), (2, 3, 0)]
    assert proven(xp, [0, 3, 3, 3], chain, dtype=dtype) == 1
    assert proven(xp, [0, 3, 3, 3], chain[::-1], dtype=dtype) == 3
    assert proven(xp, [0, 3, 3, 3], chain[::-1], [-1, 0, 1, 2], dtype=dtype) == 3


def test_a_weight_too_small_to_show_is_a_tie(xp):
    big = np.float32(2**24)
    assert proven(xp, [0, big, big], [(1, 2, 0.5), (0, 1, big)]) == 2


def test_a_cycle_of_weight_zero_proves_nothing(xp):
    with pytest.raises(VerificationError, match="vertex 1 is at the distance 2.0, but no path of that length"):
        proven(xp, [0, 2, 2], [(1, 2, 0), (2, 1, 0), (0, 1, 5)])
    arcs = [(0, 1, 2), (1, 2, 0), (2, 1, 0)]
    assert proven(xp, [0, 2, 2], arcs) == 1
    with pytest.raises(VerificationError, match="leads there by an arc from 2"):
        proven(xp, [0, 2, 2], arcs, [-1, 2, 1])


def test_an_arc_that_improves_its_head_is_named(xp):
    with pytest.raises(
        VerificationError, match=r"vertex 1 is at the distance 4.0, but the arc 0 -> 1 of weight 3.0 .* = 3.0"
    ):
        proven(xp, [0, 4], [(0, 1, 3)])
    with pytest.raises(VerificationError, match="vertex 1 is unreachable, but the arc 0 -> 1"):
        proven(xp, [0, np.inf], [(0, 1, 3)])
    with pytest.raises(VerificationError, match="vertex 1 is unreachable"):
        proven(xp, [0, 2**31 - 1], [(0, 1, 3)], dtype="int32")
    assert proven(xp, [0, 2**31 - 1], [(1, 0, 3)], dtype="int32") == 1


def test_joined_proofs_need_no_order(xp):
    """Two devices, each with a half of the arcs: what one has proven the other takes over."""
    row = xp.asarray(np.array([0, 1, 1, 2], "float32"))
    one, two = RowProof(row, [0]), RowProof(row, [0])

    def test(proof, *arc):
        proof.test(*(xp.asarray(np.array([part])) for part in arc))

    for _ in range(2):
        test(one, 1, 2, np.float32(0))
        test(two, 0, 1, np.float32(1))
        test(two, 2, 3, np.float32(1))
        one.proven = two.proven = one.proven | two.proven
    assert not len(one.lacking())
